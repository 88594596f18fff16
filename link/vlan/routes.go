package vlan

import (
	"net/netip"

	"bondstack/link"
)

// ways are the routes that the trunk gives to the link: those of what is above
// the trunk itself, and those of what is above each device, which leave with its
// tag.
type ways struct{ trunk *Trunk }

var _ link.Routes = ways{}

// taggedRoutes are routes and the tag of the device that they are above; nil for those
// without a tag.
type taggedRoutes struct {
	link.Routes
	device *Device
}

// all returns the routes, the untagged ones first.
func (w ways) all() []taggedRoutes {
	t := w.trunk
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []taggedRoutes
	if t.upper.routes != nil {
		list = append(list, taggedRoutes{t.upper.routes, nil})
	}
	for _, d := range t.devices {
		if d.upper.routes != nil {
			list = append(list, taggedRoutes{d.upper.routes, d})
		}
	}
	return list
}

// Route returns the way of the first of those above that has one. Where none
// has, it is empty if one has no route at all. It implements link.Routes.
func (w ways) Route(target netip.Addr) (way link.Way, ok bool) {
	for _, r := range w.all() {
		found, here := r.Route(target)
		ok = ok || here
		if !here || !found.Source.IsValid() {
			continue
		}
		if r.device != nil {
			found.Tags = append([]link.VLANTag{r.device.tag}, found.Tags...)
		}
		return found, true
	}
	return link.Way{}, ok
}

// Owns implements link.Routes.
func (w ways) Owns(addr netip.Addr) bool {
	for _, r := range w.all() {
		if r.Owns(addr) {
			return true
		}
	}
	return false
}

// UseRoutes takes the routes of the frames without a tag. The link is given all
// that those above know. It implements link.RouteUser.
func (t *Trunk) UseRoutes(r link.Routes) (cancel func()) { return t.useRoutes(&t.upper, r) }

// UseRoutes takes the routes of the VLAN's frames, to which the link is told the
// tag. It implements link.RouteUser.
func (d *Device) UseRoutes(r link.Routes) (cancel func()) { return d.trunk.useRoutes(&d.upper, r) }

// given are routes as one value that can be compared: the last one given counts.
type given struct{ link.Routes }

func (t *Trunk) useRoutes(u *upper, r link.Routes) (cancel func()) {
	if r == nil {
		return none
	}
	mine := &given{r}
	t.change(func() { u.routes = mine })
	t.route()
	return func() {
		t.change(func() {
			if u.routes == link.Routes(mine) {
				u.routes = nil
			}
		})
		t.route()
	}
}

// route gives the link routes while one of those above has some.
func (t *Trunk) route() {
	user, ok := t.base.(link.RouteUser)
	if !ok {
		return
	}
	t.attachMu.Lock()
	defer t.attachMu.Unlock()
	want := len(ways{t}.all()) > 0
	t.mu.Lock()
	stop := t.routing
	if !want {
		t.routing = nil
	}
	closed := t.closed
	t.mu.Unlock()
	switch {
	case want && stop == nil && !closed:
		stop := user.UseRoutes(ways{t})
		t.mu.Lock()
		t.routing = stop
		t.mu.Unlock()
	case !want && stop != nil:
		stop()
	}
}
