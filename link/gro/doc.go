// Package gro joins TCP segments that came in together to packets of up to 64 KiB,
// as a kernel does behind a network card (generic receive offload): whoever sends
// them on, or receives them, does its work once for many.
//
//	list := joiner.Join(batch)
//	n, err := device.WritePackets(list)
//	joiner.Reset()
//
// It works on lists: what came in one batch is joined within that batch, and
// nothing is held back for the next one. There are no timers.
//
// # What is joined
//
// Segments of one connection that follow each other in sequence, in the order
// they came, whose payloads have the size of the first one's; the last may be
// shorter. Their headers must be such that cutting the packet again, as Linux and
// bonding/offload do, gives back each segment to the bit: the same link header,
// VLAN tags, type of service, hop limit or TTL, DF bit, flow label,
// acknowledgement number, window, TCP options and flags, and IPv4 identifications
// that count up by one. PSH ends a packet. What has SYN, FIN, RST, URG or CWR,
// what has no payload or no ACK bit, IPv4 options, IPv6 extension headers,
// fragments, padding of Ethernet, and what is several segments already stays as
// it is, and so does what is not TCP.
//
// Within a connection nothing changes its order: a segment that cannot join the
// one before it begins anew. Against other connections a segment may move ahead
// within its batch, to where its packet began.
//
// # Checksums
//
// Only segments whose IPv4 header checksum is right are joined, and whose TCP
// checksum is right or partial (GSOOptions.NeedsCsum). It is verified unless
// RXChecksumValidated says that somebody has. A damaged segment passes by itself,
// for its receiver to drop and count. A joined packet has a partial checksum, and
// GSOOptions that tell how to cut it.
//
// # Limits
//
// Senders whose IPv4 packets all have the same identification, which RFC 6864
// allows with DF, gain nothing: a virtio header cannot say that they had. At most
// eight connections are open at a time in a batch; the one that came first gives
// way.
package gro
