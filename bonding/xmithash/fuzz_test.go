package xmithash

import (
	"math/rand/v2"
	"testing"
)

// TestOracle compares the package with the slow version, on the vectors whole
// and damaged, under every policy.
func TestOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, v := range loadVectors(t) {
		f := v.frame
		checkFrame(t, f)
		for range 2 {
			f = append([]byte{}, f...)
			f[12+r.IntN(len(f)-12)] ^= byte(1 << r.IntN(8))
			checkFrame(t, f)
			checkFrame(t, f[:r.IntN(len(f)+1)])
		}
	}
}

// checkFrame has every policy hash a frame and compares the sums with the
// oracle's.
func checkFrame(t *testing.T, frame []byte) {
	t.Helper()
	for p := range Policy(len(names)) {
		for _, via := range []Via{VLAN, Raw} {
			want := oracle(p.String(), via == VLAN, frame)
			if got, complete := p.Func(via)(frame, len(frame)); got != want || !complete {
				t.Errorf("%v, %v: %#x, %v, want %#x\n%x", p, via, got, complete, want, frame)
			}
		}
	}
}

func FuzzHash(f *testing.F) {
	seen := map[string]bool{}
	for _, v := range loadVectors(f) {
		if !seen[v.Kind] { // one of each kind
			seen[v.Kind] = true
			f.Add(v.frame, uint16(20))
		}
	}
	f.Add(ether(ip4(47, 0, []byte{0x30, 0x81, 0x88, 0x0b, 15: 0, 0xff, 3, 0, 0x21})), uint16(40))
	f.Fuzz(func(t *testing.T, frame []byte, beyond uint16) {
		checkFrame(t, frame)
		size := len(frame) + int(beyond)
		for p := range Policy(len(names)) {
			for _, via := range []Via{VLAN, Raw} {
				checkPrefixes(t, p.Func(via), frame)
				// What is complete although bytes are missing holds whatever they are.
				if sum, complete := p.Func(via)(frame, size); complete {
					whole := append(append([]byte{}, frame...), make([]byte, beyond)...)
					if want := oracle(p.String(), via == VLAN, whole); sum != want {
						t.Errorf("%v, %v: %#x by %d of %d bytes, want %#x\n%x", p, via, sum, len(frame), size, want, frame)
					}
				}
				if e := Explain(p, via, frame, 3); e.Sum != oracle(p.String(), via == VLAN, frame) {
					t.Errorf("%v, %v: explained as %#x\n%v", p, via, e.Sum, e)
				}
			}
		}
	})
}
