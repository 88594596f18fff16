package xdp

import "fmt"

// Warnings returns what an operator should know about the endpoint at this
// moment, a sentence each, or nothing: which mode is in force and why it is not
// a better one, that VLAN tags may be lost, that a peer sends partial checksums or frames that are too long,
// why an interface that is there could not be opened.
func (e *Endpoint) Warnings() []string {
	var warnings []string
	say := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("interface %q: ", e.name)+fmt.Sprintf(format, args...))
	}
	info, stats := e.Info(), e.Stats()
	if info.Reason != "" {
		say("XDP is in %v mode: %s", info.Mode, info.Reason)
	}
	if info.Mode == ModeGeneric {
		say("in generic mode frames that were merged before they come here are lost: turn that off where they come from "+
			"(ethtool -K %s gro off lro off; for a veth pair ethtool -K PEER tso off gso off)", e.name)
	}
	if info.Index != 0 && e.ns.TakesTagsOut(e.name) {
		say("it may take VLAN tags out of received frames, and XDP does not show them: where there are tags, turn that off "+
			"(ethtool -K %s rxvlan off; for a veth pair also ethtool -K PEER txvlan off)", e.name)
	}
	if mtu := e.interfaceMTU.Load(); info.Index != 0 && mtu > e.frameMTU.Load() {
		say("its MTU is %d, of which this link can do %d: longer frames that are received are lost (ip link set dev %s mtu %d)",
			mtu, e.frameMTU.Load(), e.name, e.frameMTU.Load())
	}
	if stats.RXPartialChecksum > 0 {
		deed := "taken as good"
		if e.options.RefusePartial {
			deed = "dropped"
		}
		say("%d frames came with a checksum that the kernel at the other end left for a device to complete, and were %s: "+
			"have that kernel make its checksums (ethtool -K PEER tx off)", stats.RXPartialChecksum, deed)
	}
	if stats.RXDroppedKernel > 0 {
		say("the kernel dropped %d received frames that were longer than their place", stats.RXDroppedKernel)
	}
	e.life.Lock()
	defer e.life.Unlock()
	if e.failure != nil {
		say("it is there but cannot be opened: %v", e.failure)
	}
	return warnings
}
