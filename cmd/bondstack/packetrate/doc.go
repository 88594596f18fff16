// Package packetrate compares packets a second on kernel interfaces: slaves of
// kind packet and xdp, each by itself and two in a bond, and DPDK's testpmd with
// a bond over AF_PACKET, which has to be installed for that. It has benchmarks
// only:
//
//	go test -run xxx -bench . -benchtime 15x ./cmd/bondstack/packetrate
//
// Each contender is a process with one processor, in a network namespace of its
// own. The benchmark makes the traffic on another processor, by a packet socket at
// the other end of veth pairs. Contenders have turns of a fifth of a second in
// which the others rest; the figures are medians.
//
// Limits: the receiving end of a veth pair works on the processor of who sends,
// so that a contender is slowed down by what it sends, and the traffic by what a
// contender has the kernel do for it. Linux, root and two processors are needed.
package packetrate
