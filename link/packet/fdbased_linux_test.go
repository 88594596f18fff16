package packet

import (
	"io"
	"net"
	"testing"

	"bondstack/link"
	"bondstack/link/internal/kernel"
)

func TestFdbasedCarriesTCP(t *testing.T) {
	for name, o := range map[string]Options{"gso": {}, "no gso": {NoGSO: true}, "two queues": {Queues: 2}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			h := newHost(t, p.openFdbased(o))
			l := p.listenPeer(peerV4)
			go func() {
				if c, err := l.Accept(); err == nil {
					io.Copy(c, c)
					c.Close()
				}
			}()
			c := h.dial(peerV4, l.Addr().(*net.TCPAddr).Port)
			want, _ := sum(block(transferSize / 4))
			go func() {
				io.Copy(c, block(transferSize/4))
				c.(interface{ CloseWrite() error }).CloseWrite()
			}()
			if got, err := sum(c); err != nil || got != want {
				t.Errorf("received back %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestFdbasedStateAndEnd(t *testing.T) {
	p := newPair(t)
	f := p.openFdbased(Options{})
	f.Wait() // returns: Close was not called
	r, raw := attach(f), p.raw()
	if s := f.LinkState(); s != (link.State{Up: true, Carrier: true, Speed: 10000, Duplex: link.DuplexFull}) {
		t.Errorf("LinkState() = %+v, want up with 10000 Mbit/s", s)
	}
	// It does not hear itself, and can be attached again.
	write(f, frame(kernel.Broadcast, "mine"))
	raw.next()
	f.Attach(nil)
	raw.send(frame(kernel.Broadcast, "for no one"))
	r2 := attach(f)
	raw.send(frame(kernel.Broadcast, "theirs"))
	for string(r2.next(t).frame[14:]) != "theirs" {
	}
	if len(r.got) != 0 {
		t.Errorf("the first recorder received %q", (<-r.got).frame)
	}
	told := make(chan struct{}, 100)
	defer f.SubscribeLinkState(func() { told <- struct{}{} })()
	p.peer.Down("veth1")
	awaitState(t, f, told, false)
	p.peer.Up("veth1")
	awaitState(t, f, told, true)
	// It never receives again after this, and says so.
	p.near.Down("veth0")
	awaitState(t, f, told, false)
	p.near.Up("veth0")
	usable(t, f, false)
	before := countDescriptors(t)
	f.Close()
	f.Close()
	f.Wait()
	if after := countDescriptors(t); after >= before {
		t.Errorf("%d descriptors after Close, %d before", after, before)
	}
}
