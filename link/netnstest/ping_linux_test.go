package netnstest

import (
	"strings"
	"testing"
)

func TestPing(t *testing.T) {
	a, b := New(t), New(t)
	if err := a.Ping("10.9.0.2", 1); err == nil {
		t.Error("an address answers that there is no way to")
	}
	Veth(t, a, "left", b, "right")
	a.AddAddress("left", "10.9.0.1/24")
	b.AddAddress("right", "10.9.0.2/24")
	if err := a.Ping("10.9.0.2", 10); err != nil {
		t.Error(err)
	}
}

// Ping's text is read by its sequence numbers: a request too many, which it sends
// while it waits for a late answer, is none that was lost.
func TestAnsweredOnce(t *testing.T) {
	line := func(seq, more string) string {
		return "64 bytes from 10.9.0.2: icmp_seq=" + seq + " ttl=64 time=0.1 ms" + more + "\n"
	}
	one, two, eleven := line("1", ""), line("2", ""), line("11", "")
	for _, c := range []struct{ out, want string }{
		{one + two, ""},
		{two + one + eleven + "3 packets transmitted, 2 received", ""},
		{one + eleven, "request 2 of 2 was answered 0 times"},
		{one + two + line("2", " (DUP!)"), "request 2 of 2 was answered 2 times"},
	} {
		got := ""
		if err := answeredOnce(c.out, 2); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q: %q, want %q", c.out, got, c.want)
		}
	}
}
