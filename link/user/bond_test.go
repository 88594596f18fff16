package user_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/user"
	"bondstack/stack"
)

// patience is how long a test waits for what is bound to happen.
const patience = 20 * time.Second

// rig is a host on a bond of two links to one network.
type rig struct {
	t       *testing.T
	network *user.Network
	links   []*user.Link
	bond    *bonding.Bond
	host    *stack.Host
}

func newRig(t *testing.T, mode bonding.Mode, opts user.Options) *rig {
	t.Helper()
	return newRigOn(t, bonding.Options{Mode: mode}, opts)
}

func newRigOn(t *testing.T, bond bonding.Options, opts user.Options) *rig {
	t.Helper()
	linktest.CheckGoroutines(t)
	r := &rig{t: t}
	var err error
	if r.network, err = user.NewNetwork(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.network.Close)
	if r.bond, err = bonding.New(bond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.bond.Close() })
	for i := range 2 {
		l, err := r.network.NewLink()
		if err != nil {
			t.Fatal(err)
		}
		r.links = append(r.links, l)
		if err := r.bond.Enslave(fmt.Sprintf("user%d", i), l, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.host, err = stack.NewHost(r.bond, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24"), netip.MustParsePrefix("fd00::15/64")},
		Gateway:   user.DefaultGateway, Gateway6: user.DefaultGateway6, DADInterval: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.host.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.host.AwaitAddresses(ctx); err != nil {
		t.Fatalf("the addresses were claimed by another: %v", err)
	}
	return r
}

func (r *rig) dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := r.host.DialContext(ctx, network, address)
	if err == nil {
		c.SetDeadline(time.Now().Add(patience))
		r.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (r *rig) mustDial(network, address string) net.Conn {
	r.t.Helper()
	c, err := r.dial(network, address)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// listen listens on the machine's loopback interface and serves each connection.
func listen(t *testing.T, address string, serve func(*net.TCPConn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("needs %s: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually polls until ok returns true, for what nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31
	}
	return b
}

// A download lives through the cut of each link in turn, in every mode but
// 802.3ad: without a partner that needs some seconds to choose another port. With
// fail_over_mac=active the bond's address changes as well.
func TestDownloadThroughCuts(t *testing.T) {
	for mode := bonding.BalanceRR; mode <= bonding.BalanceALB; mode++ {
		if mode != bonding.IEEE8023AD {
			t.Run(mode.String(), func(t *testing.T) { download(t, bonding.Options{Mode: mode}) })
		}
	}
	t.Run("fail_over_mac=active", func(t *testing.T) {
		download(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive})
	})
}

func download(t *testing.T, bond bonding.Options) {
	const size = 2 << 20
	data := pattern(size)
	r := newRigOn(t, bond, user.Options{Loopback: true})
	port := listen(t, "127.0.0.1:0", func(c *net.TCPConn) { c.Write(data) })
	c := r.mustDial("tcp", fmt.Sprintf("10.0.2.2:%d", port))
	sum, chunk := sha256.New(), make([]byte, 32<<10)
	cut := 0
	for got := 0; got < size; {
		n, err := c.Read(chunk)
		if err != nil {
			t.Fatalf("after %d bytes, %d cuts: %v", got, cut, err)
		}
		sum.Write(chunk[:n])
		if got += n; got > (cut+1)*size/3 && cut < 2 {
			r.links[cut^1].SetCarrier(true)
			r.links[cut].SetCarrier(false)
			cut++
		}
	}
	if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("the bytes are not those sent")
	}
	if n, err := c.Read(chunk); err != io.EOF {
		t.Errorf("after the end: %d, %v, want EOF", n, err)
	}
}

// Datagrams come back by IPv4 and IPv6, in both modes that take most care.
func TestUDPEcho(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceRR} {
		r := newRig(t, mode, user.Options{Loopback: true})
		for _, c := range []struct{ near, far string }{{"10.0.2.2", "127.0.0.1:0"}, {"fd00::2", "[::1]:0"}} {
			pc, err := net.ListenPacket("udp", c.far)
			if err != nil {
				t.Logf("no %s here: %v", c.far, err)
				continue
			}
			defer pc.Close()
			go func() {
				b := make([]byte, 64<<10)
				for {
					n, from, err := pc.ReadFrom(b)
					if err != nil {
						return
					}
					pc.WriteTo(b[:n], from)
				}
			}()
			conn := r.mustDial("udp", net.JoinHostPort(c.near, fmt.Sprint(pc.LocalAddr().(*net.UDPAddr).Port)))
			for _, size := range []int{0, 1, 1400, 4000, 20000} {
				want := pattern(size)
				if _, err := conn.Write(want); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 64<<10)
				n, err := conn.Read(got)
				if err != nil || !bytes.Equal(got[:n], want) {
					t.Errorf("%s %s: %d bytes came back as %d, %v", mode, c.near, size, n, err)
				}
			}
		}
		eventually(t, "what went out has come back, by the counters", func() bool {
			s := r.network.Stats().Relay.UDP
			return s.Open > 0 && s.ToFar > 0 && s.ToFar == s.ToNear
		})
	}
}

// The gateways answer echoes; nobody else does where the host has no ping sockets.
func TestPing(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, user.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, to := range []netip.Addr{user.DefaultGateway, user.DefaultGateway6, netip.MustParseAddr("fe80::2")} {
		if _, err := r.host.Ping(ctx, to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.host.Ping(short, netip.MustParseAddr("169.254.169.254")); err == nil {
		t.Error("a link-local address of the host answered")
	}
	if s := r.network.Stats(); s.Denied != 1 {
		t.Errorf("stats = %+v, want 1 denied", s)
	}
}

// What the host refuses, and what may not be reached, is refused here.
func TestRefused(t *testing.T) {
	for _, loopback := range []bool{false, true} {
		r := newRig(t, bonding.ActiveBackup, user.Options{Loopback: loopback})
		port := listen(t, "127.0.0.1:0", func(*net.TCPConn) {})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody := l.Addr().(*net.TCPAddr).Port
		l.Close()
		_, err = r.dial("tcp", fmt.Sprintf("10.0.2.2:%d", port))
		if loopback != (err == nil) {
			t.Errorf("loopback %v: %v", loopback, err)
		}
		for _, address := range []string{fmt.Sprintf("10.0.2.2:%d", nobody), "169.254.169.254:80", "0.0.0.1:80"} {
			if _, err := r.dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: %v, want refused", address, err)
			}
		}
		u := r.mustDial("udp", "169.254.169.254:80")
		u.Write([]byte("x"))
		if _, err := u.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("udp: %v, want refused", err)
		}
		want := uint64(5)
		if loopback {
			want = 3
		}
		if s := r.network.Stats(); s.Denied != want {
			t.Errorf("loopback %v: %+v, want %d denied", loopback, s, want)
		}
	}
}

// The name server is at port 53 of the gateway, also where loopback is off.
func TestNameServer(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	r := newRig(t, bonding.ActiveBackup, user.Options{DNS: pc.LocalAddr().(*net.UDPAddr).AddrPort()})
	c := r.mustDial("udp", "10.0.2.2:53")
	c.Write([]byte("question"))
	b := make([]byte, 64)
	n, from, err := pc.ReadFrom(b)
	if err != nil || string(b[:n]) != "question" {
		t.Fatalf("the name server got %q, %v", b[:n], err)
	}
	pc.WriteTo([]byte("answer"), from)
	if n, err := c.Read(b); err != nil || string(b[:n]) != "answer" {
		t.Errorf("the answer is %q, %v", b[:n], err)
	}
}

// Ends and resets pass each for itself, in both directions.
func TestEnds(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, user.Options{Loopback: true})
	accepted := make(chan *net.TCPConn)
	done := make(chan struct{})
	defer close(done)
	port := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		c.SetDeadline(time.Now().Add(patience))
		accepted <- c
		<-done
	})
	connect := func() (client *stack.TCPConn, server *net.TCPConn) {
		c := r.mustDial("tcp", fmt.Sprintf("10.0.2.2:%d", port))
		return c.(*stack.TCPConn), <-accepted
	}
	answer := pattern(1_000_000)

	client, server := connect()
	client.Write([]byte("question"))
	client.CloseWrite()
	if got, err := io.ReadAll(server); string(got) != "question" || err != nil {
		t.Errorf("the question came as %q, %v", got, err)
	}
	go func(server *net.TCPConn) {
		server.Write(answer)
		server.CloseWrite()
	}(server)
	if got, err := io.ReadAll(client); !bytes.Equal(got, answer) || err != nil {
		t.Errorf("of the answer came %d bytes, %v", len(got), err)
	}

	client, server = connect()
	server.SetLinger(0)
	server.Close()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v, want a reset", err)
	}
	client, server = connect()
	client.SetLinger(0)
	client.Close()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server reads %v, want a reset", err)
	}
}

// A network that ends with connections and handshakes under way leaves nothing.
func TestCloseUnderLoad(t *testing.T) {
	r := newRig(t, bonding.BalanceRR, user.Options{Loopback: true})
	port := listen(t, "127.0.0.1:0", func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	for range 5 {
		c := r.mustDial("tcp", fmt.Sprintf("10.0.2.2:%d", port))
		go c.Write(make([]byte, 1<<20))
	}
	r.links[0].SetCarrier(false)
	r.links[1].SetCarrier(false) // resets do not arrive, nor do handshakes end
	r.network.Close()
	r.network.Close()
	if s := r.network.Stats().Relay.TCP; s.Open != 0 || s.Opened != 5 {
		t.Errorf("stats = %+v", s)
	}
	if _, err := r.network.NewLink(); err == nil {
		t.Error("a closed network made a link")
	}
}
