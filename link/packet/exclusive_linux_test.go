package packet

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"bondstack/link/internal/kernel"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

// hostV4 is an address of the near host.
const hostV4 = "10.9.0.7"

// arpRequest asks for the hardware address of the near host (RFC 826).
func arpRequest() []byte {
	p := []byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0xee}
	p = append(p, net.ParseIP(peerV4).To4()...)
	p = append(p, 0, 0, 0, 0, 0, 0)
	p = append(p, net.ParseIP(hostV4).To4()...)
	return etherFrame(kernel.Broadcast, 0x806, p)
}

// answered sends an ARP request and a frame that an endpoint answers, and
// reports whether the host answered the request before that.
func answered(t *testing.T, p *pair, raw *rawPeer, e *Endpoint, r *recorder) bool {
	t.Helper()
	raw.send(arpRequest())
	for r.next(t).protocol != 0x806 {
	}
	if n, err := write(e, frame(kernel.Broadcast, "marker")); n != 1 {
		t.Fatalf("WritePackets = %d, %v", n, err)
	}
	found := false
	for {
		b := raw.any()
		switch {
		case len(b) >= 22 && b[12] == 8 && b[13] == 6 && b[21] == 2:
			found = true
		case string(b[14:]) == "marker":
			return found
		}
	}
}

func TestExclusiveKeepsTheHostSilent(t *testing.T) {
	p := newPair(t)
	p.near.AddAddress("veth0", hostV4+"/24")
	e := p.open(Options{Exclusive: true})
	if w := e.Warnings(); len(w) != 0 {
		t.Errorf("Warnings() = %q, want none", w)
	}
	if !e.Info().Exclusive {
		t.Error("Info() does not say exclusive")
	}
	r, raw := attach(e), p.raw()
	for range 50 {
		if answered(t, p, raw, e, r) {
			t.Fatal("the host answered an ARP request")
		}
	}
	e.Close()
	// Without it the host answers again.
	e = p.open(Options{})
	r = attach(e)
	eventually(t, "the host answers", func() bool { return answered(t, p, raw, e, r) })
}

// TestExclusiveWithTheHostsAddress has the stack use an address of the host:
// without exclusion the host would reset its connections.
func TestExclusiveWithTheHostsAddress(t *testing.T) {
	p := newPair(t)
	p.near.AddAddress("veth0", stackV4+"/24")
	h := newHost(t, p.open(Options{Exclusive: true}))
	l, err := gonet.ListenTCP(h.s, tcpip.FullAddress{Addr: address(stackV4), Port: 80}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	for i := range 100 {
		p.peer.Do(func() {
			c, err := net.Dial("tcp", stackV4+":80")
			if err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
			defer c.Close()
			fmt.Fprint(c, "hello")
			c.(*net.TCPConn).CloseWrite()
			if b, err := io.ReadAll(c); string(b) != "hello" {
				t.Fatalf("connection %d: received %q, %v", i, b, err)
			}
		})
	}
}

// TestExclusionEndsWithAKilledProcess kills a process that holds one.
func TestExclusionEndsWithAKilledProcess(t *testing.T) {
	if os.Getenv("PACKET_TEST_HOLD") != "" {
		if _, err := New("veth0", Options{Exclusive: true}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	p := newPair(t)
	p.near.AddAddress("veth0", hostV4+"/24")
	holder := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	holder.Env = append(os.Environ(), "PACKET_TEST_HOLD=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.near.Start(holder)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the process that holds the exclusion said %q, %v", line, err)
	}
	e := p.open(Options{})
	r, raw := attach(e), p.raw()
	for range 20 {
		if answered(t, p, raw, e, r) {
			t.Fatal("the host answered an ARP request")
		}
	}
	holder.Process.Kill()
	holder.Wait()
	eventually(t, "the host answers", func() bool { return answered(t, p, raw, e, r) })
}
