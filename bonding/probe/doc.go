// Package probe makes and reads the frames by which a bond finds out whether a
// link carries traffic: ARP requests and IPv6 neighbour solicitations that are
// sent to known targets, and what comes back of them. It decides which received
// frames are evidence (Linux: arp_validate). Everything is a function of its
// arguments: no time, no locks, no other packages.
//
// ARPRequest and Solicitation build frames, with VLAN tags where the way to the
// target has some. Parse reads a received frame, whatever it holds, without
// allocation. Message.Witness says which address of it has to be a target's and
// which ours for the frame to count.
//
// Limits: Ethernet; at most MaxTags tags; IPv6 neighbour discovery directly
// behind the base header, as it is always sent. Neither ARP nor ND is
// authenticated: who is on the same network can forge both.
package probe
