package bonding

import (
	"net"

	"bondstack/bonding/rlb"
	"bondstack/link"
)

// shownClients is how many clients Status lists.
const shownClients = 256

// ClientsStatus is what balance-alb knows of those that it balances: Linux's
// rlb_hash_table.
type ClientsStatus struct {
	Count   int            `json:"count"`
	Max     int            `json:"max"`
	Refused uint64         `json:"refused"` // times that a host found no room
	Evicted uint64         `json:"evicted"` // idle ones that made room
	List    []ClientStatus `json:"list"`    // the newest first, 256 at most
}

// ClientStatus is one client: a neighbour as it sees one of our addresses.
type ClientStatus struct {
	Source      string   `json:"source"`          // our address
	Destination string   `json:"destination"`     // the client's
	MACAddress  string   `json:"mac_address"`     // the client's; empty while it is not known
	VLANs       []string `json:"vlans,omitempty"` // the outermost first
	Slave       string   `json:"slave"`           // empty: none
}

// addClientsStatus adds the receiving half's part.
func (b *Bond) addClientsStatus(st *Status) {
	r := b.clients()
	if r == nil {
		return
	}
	r.mu.Lock()
	sum, list := r.table.Stats(), r.table.Clients(shownClients)
	for i, s := range b.slaves {
		st.Slaves[i].Balance.Clients = r.table.Load(s.slot)
	}
	r.mu.Unlock()
	c := &ClientsStatus{Count: sum.Clients, Max: sum.Max, Refused: sum.Refused, Evicted: sum.Evicted, List: make([]ClientStatus, len(list))}
	for i := range list {
		c.List[i] = b.clientStatus(&list[i])
	}
	st.Balance.Clients = c
}

func (b *Bond) clientStatus(c *rlb.Client) ClientStatus {
	st := ClientStatus{Source: c.Ours.String(), Destination: c.Theirs.String()}
	if c.MAC != (rlb.MAC{}) {
		st.MACAddress = net.HardwareAddr(c.MAC[:]).String()
	}
	for _, tag := range c.Tags {
		if tag != (rlb.Tag{}) {
			st.VLANs = append(st.VLANs, link.VLANTag{Protocol: tag.Protocol, ID: tag.ID}.String())
		}
	}
	if s := b.first(func(s *slave) bool { return s.slot == c.Slave }); s != nil {
		st.Slave = s.name
	}
	return st
}
