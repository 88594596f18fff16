package linktest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// NewRand returns a source whose seed is printed when the test fails. The
// environment variable SEED replays one.
func NewRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SEED=%q: %v", s, err)
		}
		seed = n
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed: SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}
