package stack_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"

	"bondstack/link/wire"
	"bondstack/stack"
)

// A web server and its client, each on a host of its own, with a wire between
// them. Package net/http is used as ever; only the listener and the dialler are
// the hosts'.
func Example() {
	left, right, err := wire.New(wire.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := stack.NewHost(left, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := stack.NewHost(right, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	l, err := server.Listen("tcp", ":80")
	if err != nil {
		fmt.Println(err)
		return
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s, this is %s", r.RemoteAddr[:8], r.Host)
	}))

	browser := http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
	resp, err := browser.Get("http://10.0.0.1/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status)
	fmt.Println(string(body))
	// Output:
	// 200 OK
	// hello 10.0.0.2, this is 10.0.0.1
}

// Datagrams both ways.
func ExampleHost_ListenPacket() {
	left, right, _ := wire.New(wire.Options{})
	a, _ := stack.NewHost(left, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
	})
	defer a.Close()
	b, _ := stack.NewHost(right, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
	})
	defer b.Close()

	p, err := a.ListenPacket("udp", ":7")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		buf := make([]byte, 1500)
		n, from, err := p.ReadFrom(buf)
		if err == nil {
			p.WriteTo(buf[:n], from)
		}
	}()
	c, err := b.Dial("udp", "10.0.0.1:7")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(c, "echo")
	buf := make([]byte, 1500)
	n, err := c.Read(buf)
	fmt.Println(string(buf[:n]), err)
	// Output: echo <nil>
}

// A host finds out whether another one is there.
func ExampleHost_Ping() {
	left, right, _ := wire.New(wire.Options{})
	a, _ := stack.NewHost(left, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
	})
	defer a.Close()
	b, _ := stack.NewHost(right, stack.HostOptions{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
	})
	defer b.Close()

	rtt, err := a.Ping(context.Background(), netip.MustParseAddr("10.0.0.2"))
	fmt.Println(rtt > 0, err)
	// Output: true <nil>
}
