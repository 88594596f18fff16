package rlb

// Update is a frame that tells a client under which address we are to be
// reached.
type Update struct {
	Slave int // by which it is sent
	Frame []byte
}

// update makes the frame for a client on a slave: an ARP reply, or a neighbour
// advertisement that overrides what the client knows.
func (t *Table) update(c *client, s *Slave) Update {
	b := make([]byte, 0, MaxHeader)
	b = append(b, c.mac[:]...)
	b = append(b, s.MAC[:]...)
	for _, tag := range c.tags {
		if tag != (Tag{}) {
			b = be.AppendUint16(b, tag.Protocol)
			b = be.AppendUint16(b, tag.ID)
		}
	}
	if c.ours.Is4() {
		b = appendReply(b, c, s.MAC)
	} else {
		b = appendAdvertisement(b, c, s.MAC, t.ours[c.ours].router)
	}
	return Update{s.ID, b}
}

func appendReply(b []byte, c *client, mac MAC) []byte {
	ours, theirs := c.ours.As4(), c.theirs.As4()
	b = be.AppendUint16(b, typeARP)
	b = append(b, 0, 1, typeIPv4>>8, typeIPv4&0xff, 6, 4, 0, 2)
	b = append(append(b, mac[:]...), ours[:]...)
	return append(append(b, c.mac[:]...), theirs[:]...)
}

func appendAdvertisement(b []byte, c *client, mac MAC, router bool) []byte {
	const size = ndSize + 8 // with one option
	ours, theirs := c.ours.As16(), c.theirs.As16()
	b = be.AppendUint16(b, typeIPv6)
	ip := len(b)
	b = append(b, 6<<4, 0, 0, 0, 0, size, icmpv6, hopLimit)
	b = append(append(b, ours[:]...), theirs[:]...)
	flags := byte(flagOverride)
	if router {
		flags |= flagRouter
	}
	nd := len(b)
	b = append(b, advertise, 0, 0, 0, flags, 0, 0, 0)
	b = append(b, ours[:]...)
	b = append(b, targetOption, 1)
	b = append(b, mac[:]...)
	sum := uint32(size + icmpv6)
	for i := ip + 8; i < len(b); i += 2 {
		sum += uint32(be16(b[i:]))
	}
	be.PutUint16(b[nd+2:], ^fold(sum))
	return b
}
