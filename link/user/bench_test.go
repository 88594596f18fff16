package user_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"bondstack/bonding"
	"bondstack/link/user"
	"bondstack/stack"
)

// BenchmarkDownload moves bytes from a socket of the host's loopback interface to
// a host on a bond of two links.
func BenchmarkDownload(b *testing.B) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceRR} {
		b.Run(fmt.Sprintf("mode=%d", mode), func(b *testing.B) { benchmarkDownload(b, mode) })
	}
}

func benchmarkDownload(b *testing.B, mode bonding.Mode) {
	const block = 1 << 20
	network, err := user.NewNetwork(user.Options{Loopback: true})
	if err != nil {
		b.Fatal(err)
	}
	defer network.Close()
	bond, err := bonding.New(bonding.Options{Mode: mode})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2 {
		l, err := network.NewLink()
		if err != nil {
			b.Fatal(err)
		}
		if err := bond.Enslave(fmt.Sprintf("user%d", i), l, bonding.SlaveOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	host, err := stack.NewHost(bond, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24")}})
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for data := make([]byte, block); ; {
			if _, err := c.Write(data); err != nil {
				return
			}
		}
	}()
	c, err := host.Dial("tcp", fmt.Sprintf("10.0.2.2:%d", l.Addr().(*net.TCPAddr).Port))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.SetBytes(block)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.CopyN(io.Discard, c, block); err != nil {
			b.Fatal(err)
		}
	}
}
