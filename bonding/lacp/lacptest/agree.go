package lacptest

import "bondstack/bonding/lacp"

// agree looks for cables whose two ends both send data, in aggregators that
// are not each other's. That may be for a while, until PDUs or silence tell;
// longer than Bound is a fault.
func (n *Net) agree() {
	if !n.dirty {
		return
	}
	n.dirty = false
	for _, c := range n.cables {
		if c.Up && c.disagree() {
			if !c.apart {
				c.apart, c.since = true, n.now
			}
			continue
		}
		c.end()
	}
}

// end closes the account of a disagreement.
func (c *Cable) end() {
	if !c.apart {
		return
	}
	c.apart = false
	n := c.net
	d := n.now - c.since
	n.Worst = max(n.Worst, d)
	if n.Bound > 0 && d > n.Bound {
		n.fault("ends %v and %v disagreed for %v", name(c.Ends[0]), name(c.Ends[1]), d)
	}
}

// Finish closes all accounts, as if now all were well.
func (n *Net) Finish() {
	n.agree()
	for _, c := range n.cables {
		c.end()
	}
}

func (c *Cable) disagree() bool {
	a, okA := ends(c.Ends[0])
	b, okB := ends(c.Ends[1])
	if !okA || !okB || !a.Sends || !b.Sends || a.Fallback && b.Fallback {
		return false
	}
	mirrors := func(x, y *lacp.PortStatus) bool {
		return x.Partner.System == y.Actor.System && x.Partner.Key == y.Actor.Key && x.Partner.Port == y.Actor.Port
	}
	return !mirrors(&a, &b) || !mirrors(&b, &a)
}

func ends(p *Port) (lacp.PortStatus, bool) {
	if d, ok := p.Station.(*Node); ok {
		return d.Sys.Port(p.ID)
	}
	return lacp.PortStatus{}, false
}

func name(p *Port) string {
	if d, ok := p.Station.(*Node); ok {
		return d.Name
	}
	return "partner"
}
