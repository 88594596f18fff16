package kernel

import (
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func FuzzParseLinkNews(f *testing.F) {
	attr := nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated("veth0")).Serialize()
	f.Add(append(nl.NewIfInfomsg(0).Serialize(), attr...))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		index, name := parseLinkNews(b)
		if len(b) < unix.SizeofIfInfomsg && (index != 0 || name != "") {
			t.Errorf("parseLinkNews of %d bytes = %d, %q", len(b), index, name)
		}
	})
}

func TestParseLinkNews(t *testing.T) {
	m := nl.NewIfInfomsg(0)
	m.Index = 42
	b := append(m.Serialize(), nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated("veth0")).Serialize()...)
	if index, name := parseLinkNews(b); index != 42 || name != "veth0" {
		t.Errorf("parseLinkNews = %d, %q, want 42, veth0", index, name)
	}
}
