package xmithash

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// A vector is a frame that a real Linux bond sent, and the slave that it left
// by. See testdata/README.md.
type vector struct {
	Kind   string
	Via    string
	Frame  string
	Policy string
	Slaves int
	Slave  int

	line   int
	via    Via
	policy Policy
	frame  []byte
}

func loadVectors(tb testing.TB) []vector {
	tb.Helper()
	f, err := os.Open("../../testdata/xmit-hash.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var vs []vector
	for s := bufio.NewScanner(f); s.Scan(); {
		v := vector{line: len(vs) + 1}
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			tb.Fatalf("line %d: %v", v.line, err)
		}
		if v.frame, err = hex.DecodeString(v.Frame); err != nil {
			tb.Fatalf("line %d: %v", v.line, err)
		}
		if v.policy, err = ParsePolicy(v.Policy); err != nil {
			tb.Fatalf("line %d: %v", v.line, err)
		}
		if v.via, err = ParseVia(v.Via); err != nil {
			tb.Fatalf("line %d: %v", v.line, err)
		}
		vs = append(vs, v)
	}
	if len(vs) != 5400 {
		tb.Fatalf("%d vectors, want 5400", len(vs))
	}
	return vs
}

func TestRecordedVectors(t *testing.T) {
	for _, v := range loadVectors(t) {
		sum, complete := v.policy.Func(v.via)(v.frame, len(v.frame))
		if !complete {
			t.Fatalf("line %d: %s, %s, %s: the whole frame is not enough", v.line, v.policy, v.via, v.Kind)
		}
		if got := int(sum % uint32(v.Slaves)); got != v.Slave {
			t.Errorf("line %d: %s, %s, %s: hash %#x mod %d = %d, Linux took %d\n%s",
				v.line, v.policy, v.via, v.Kind, sum, v.Slaves, got, v.Slave, v.Frame)
		}
	}
}

// TestPrefixes asks for every vector, whole and cut short, by every prefix: an
// answer is either "more bytes" or the one that the frame has.
func TestPrefixes(t *testing.T) {
	for _, v := range loadVectors(t) {
		hash := v.policy.Func(v.via)
		for _, size := range []int{len(v.frame), len(v.frame) / 2, 13, 17, 33, 37} {
			checkPrefixes(t, hash, v.frame[:min(size, len(v.frame))])
		}
		if t.Failed() {
			t.Fatalf("line %d: %s, %s, %s: %s", v.line, v.policy, v.via, v.Kind, v.Frame)
		}
	}
}

func checkPrefixes(t *testing.T, hash Func, frame []byte) {
	t.Helper()
	want, complete := hash(frame, len(frame))
	if !complete {
		t.Errorf("%d bytes, the whole frame, are not enough", len(frame))
	}
	enough := false
	for n := range len(frame) + 1 {
		// A capacity beyond the prefix must not let it see more.
		sum, complete := hash(frame[:n], len(frame))
		switch {
		case complete && sum != want:
			t.Errorf("%d of %d bytes give %#x, all give %#x", n, len(frame), sum, want)
		case !complete && enough:
			t.Errorf("%d of %d bytes are not enough, though fewer were", n, len(frame))
		case !complete && sum != 0:
			t.Errorf("%d of %d bytes: incomplete with a sum of %#x, want 0", n, len(frame), sum)
		}
		enough = complete
	}
}

// TestPrefixIsShort checks that a prefix is not asked to be longer than the
// headers that a policy reads.
func TestPrefixIsShort(t *testing.T) {
	f := ether(ip4(6, 0, ports(40000, 80)))
	for p, need := range map[Policy]int{Layer2: 14, Layer23: 34, Layer34: 38, Encap23: 34, Encap34: 38, VLANSrcMAC: 14} {
		for n := range len(f) {
			if _, complete := p.Func(VLAN)(f[:n], len(f)); complete != (n >= need) {
				t.Errorf("%v with %d of %d bytes: complete is %v, want it from %d on", p, n, len(f), complete, need)
			}
		}
	}
}
