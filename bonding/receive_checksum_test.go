package bonding_test

import (
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Netstack verifies nothing on a bond, which claims that it has: so the bond
// verifies each frame that its slave does not vouch for, as a whole or by
// itself.
func TestReceiveChecksums(t *testing.T) {
	mac := macOf("eth0")
	four, six := linktest.Flow4(1), linktest.Flow6(1)
	four.DstMAC, six.DstMAC = mac, mac
	odd := func(frame []byte, at int) []byte {
		f := append([]byte{}, frame...)
		f[at] ^= 0x10
		return f
	}
	noSum := four.UDP([]byte("no checksum")) // RFC 768 allows it
	noSum[14+20+6], noSum[14+20+7] = 0, 0
	for _, tt := range []struct {
		about string
		frame []byte
		bad   bool
	}{
		{"udp", four.UDP([]byte("right")), false},
		{"udp, payload", odd(four.UDP([]byte("wrong")), 14+20+8), true},
		{"udp, port", odd(four.UDP([]byte("wrong")), 14+20), true},
		{"udp, address", odd(four.UDP([]byte("wrong")), 14+12), true},
		{"udp without checksum", noSum, false},
		{"udp6", six.UDP([]byte("right")), false},
		{"udp6, payload", odd(six.UDP([]byte("wrong")), 14+40+8), true},
		{"tcp", four.TCP(linktest.Segment{Payload: []byte("right")}), false},
		{"tcp, payload", odd(four.TCP(linktest.Segment{Payload: []byte("wrong")}), 14+20+20), true},
		{"tcp6, payload", odd(six.TCP(linktest.Segment{Payload: []byte("wrong")}), 14+40+20), true},
		{"ip header", odd(four.UDP([]byte("wrong")), 14+8), true},
		{"arp", four.ARPReply(), false},
		{"padded", append(four.UDP(nil), make([]byte, 18)...), false},
		{"padded with noise", append(four.UDP(nil), "noise behind"...), false},
	} {
		for _, vouch := range []string{"nobody", "frame", "slave"} {
			ro := linktest.RecorderOptions{}
			if vouch == "slave" {
				ro.Capabilities = stack.CapabilityRXChecksumOffload
			}
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
			link := r.enslave("eth0", bonding.SlaveOptions{}, ro)
			link.InjectWith(tt.frame, linktest.InjectOptions{RXChecksumValidated: vouch == "frame"})
			want := 1
			if tt.bad && vouch == "nobody" {
				want = 0
			}
			if got := len(r.up.Drain()); got != want || r.drops("rx_checksum") != uint64(1-want) {
				t.Errorf("%s, vouched for by %s: delivered %d, rx_checksum %d, want %d delivered", tt.about, vouch, got, r.drops("rx_checksum"), want)
			}
		}
	}
}
