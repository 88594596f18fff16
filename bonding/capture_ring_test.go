package bonding

import (
	"context"
	"testing"
	"time"
)

// The end of a capture reaches a reader that has found nothing, and is about to sleep.
func TestCaptureEndsBeforeSleep(t *testing.T) {
	c := &Capture{ring: newCaptureRing(64)}
	if c.ring.next() != nil {
		t.Fatal("a frame in an empty ring")
	}
	c.end()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !c.ring.await(ctx) {
		t.Error("the reader sleeps on after the end")
	}
}
