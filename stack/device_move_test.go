package stack_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/stack"
)

// Cases T220, T221, T223 and T224.
func TestMove(t *testing.T) {
	from, to := newNetstack(t), newNetstack(t)
	a, b := newTable(t, stack.DevicesOptions{Stack: from}), newTable(t, stack.DevicesOptions{Stack: to})
	ep := newRecorder()
	// The same name and index in both.
	mustAdd(t, b, stack.NewDevice{Name: "eth0", Link: newRecorder(), Index: 100})
	index := mustAdd(t, a, stack.NewDevice{Name: "eth0", Link: ep, Index: 100, AltNames: []string{"alias"}})
	withAddress(t, from, index, "10.0.0.1/24")
	wa, wb := a.Watch(10), b.Watch(10)

	// The name is taken: the device stays as it is.
	_, err := a.Move(index, b, "")
	mustBe(t, err, stack.ErrNameExists)
	if _, ok := a.ByName("alias"); !ok || !from.CheckNIC(index) || !ep.IsAttached() || len(from.GetRouteTable()) != 1 {
		t.Error("the device is not what it was")
	}
	var g refuser
	g.name = "eth1"
	remove := b.AddGuard(&g)
	_, err = a.Move(index, b, "eth1")
	mustBe(t, err, stack.ErrVetoed)
	remove()
	if got := append(events(wa), events(wb)...); len(got) != 0 {
		t.Errorf("events %q", got)
	}
	// With a name of its own it moves, and its alternative name with it.
	moved, err := a.Move(index, b, "eth%d")
	if err != nil {
		t.Fatal(err)
	}
	if moved.Name() != "eth1" || moved.Index() != 103 || !to.CheckNIC(103) || from.HasNIC(index) || !ep.IsAttached() || ep.Calls().Close != 0 {
		t.Errorf("moved is %s, index %d, NICs %v %v, attached %v, %+v", moved.Name(), moved.Index(), to.CheckNIC(103), from.HasNIC(index), ep.IsAttached(), ep.Calls())
	}
	if _, ok := a.ByName("alias"); ok {
		t.Error("the alternative name is still in the old table")
	}
	if dev, ok := b.ByName("alias"); !ok || dev != moved {
		t.Error("the alternative name is not in the new table")
	}
	if got, want := events(wa), []string{"2: eth0 (index 100) deleted"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if got, want := events(wb), []string{"2: eth1 (index 103) added"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	// The link's news come from its new place, and deleting it there closes it.
	if err := b.SetMTU(103, 1300); err != nil {
		t.Error(err)
	}
	if got := append(events(wb), events(wa)...); !slices.Equal(got, []string{"2: eth1 (index 103) mtu 1300"}) {
		t.Errorf("events %q", got)
	}
	if err := b.Delete(103); err != nil || ep.Calls().Close != 1 {
		t.Errorf("Delete = %v, %+v", err, ep.Calls())
	}
	_, err = a.Move(index, b, "x")
	mustBe(t, err, stack.ErrNoDevice)
	_, err = b.Move(100, b, "x")
	if err == nil {
		t.Error("Move into the same table succeeds")
	}
	_, err = b.Move(100, a, "a/b")
	mustBe(t, err, stack.ErrInvalidName)
}

// A socket bound to a device that moves away ends.
func TestMoveEndsBindings(t *testing.T) {
	from, to := newNetstack(t), newNetstack(t)
	a, b := newTable(t, stack.DevicesOptions{Stack: from}), newTable(t, stack.DevicesOptions{Stack: to})
	index := mustAdd(t, a, stack.NewDevice{Name: "eth0", Link: newRecorder(), Index: 7})
	ep := newUDP(t, from)
	defer ep.Close()
	binding, err := a.Bind(ep, index)
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := a.Move(index, b, ""); err != nil || moved.Index() != 7 {
		t.Fatalf("Move = %v, %v", moved, err)
	}
	<-binding.Gone()
	if err := binding.Err(); !errors.Is(err, stack.ErrNoDevice) {
		t.Errorf("Err() = %v", err)
	}
	if got := ep.SocketOptions().GetBindToDevice(); got != int32(index) {
		t.Errorf("bound to %d", got)
	}
}

// A NIC that cannot be made in the other stack is made again in the old one.
func TestMoveFails(t *testing.T) {
	from, to := newNetstack(t), newNetstack(t)
	a, b := newTable(t, stack.DevicesOptions{Stack: from}), newTable(t, stack.DevicesOptions{Stack: to})
	index := mustAdd(t, a, stack.NewDevice{Name: "eth0", Link: newRecorder(), Index: 7})
	var balance ledger
	b.AddGuard(&balance)
	b.AddGuard(&squatter{to})
	w := a.Watch(10)
	if _, err := a.Move(index, b, ""); !errors.Is(err, syscall.EEXIST) && (err == nil || !strings.Contains(err.Error(), "making NIC 7")) {
		t.Errorf("Move = %v", err)
	}
	if dev, ok := a.ByName("eth0"); !ok || dev.Index() != index || !from.CheckNIC(index) || !dev.Endpoint().IsAttached() {
		t.Errorf("the device is %v, NIC %v", dev, from.CheckNIC(index))
	}
	if len(balance.balance) != 0 || b.Table().Len() != 0 || len(events(w)) != 0 {
		t.Errorf("approved %v, %d devices in the other table", balance.balance, b.Table().Len())
	}
	if err := a.SetMTU(index, 1300); err != nil || len(events(w)) != 1 {
		t.Errorf("SetMTU = %v, or no event", err)
	}
}

// squatter is a guard that makes the NIC itself, so that the table cannot.
type squatter struct{ s *netstack.Stack }

func (q *squatter) Approve(c stack.DeviceChange) error {
	q.s.CreateNIC(c.New.Index(), newRecorder())
	return nil
}

func (q *squatter) Undo(stack.DeviceChange) {}
