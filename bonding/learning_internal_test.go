package bonding

import "testing"

// What waits for a writer is bounded, and what finds no room is told.
func TestOwnFramesBound(t *testing.T) {
	var o ownFrames
	if list, refused := o.begin(nil); list != nil || refused != 0 || o.busy {
		t.Errorf("begin(nothing) = %d frames, %d refused, busy %v", len(list), refused, o.busy)
	}
	two := make([][]byte, 2)
	if list, refused := o.begin(two); len(list) != 2 || refused != 0 {
		t.Fatalf("begin(2) = %d frames, %d refused, want both to write", len(list), refused)
	}
	if list, refused := o.begin(make([][]byte, maxOwnFrames-1)); list != nil || refused != 0 {
		t.Errorf("begin() of another = %d frames, %d refused, want all to wait", len(list), refused)
	}
	if list, refused := o.begin(two); list != nil || refused != 1 {
		t.Errorf("begin(2) with room for one = %d frames, %d refused", len(list), refused)
	}
	if list := o.next(); len(list) != maxOwnFrames {
		t.Errorf("next() = %d frames, want %d", len(list), maxOwnFrames)
	}
	if list := o.next(); list != nil || o.busy {
		t.Errorf("next() = %d frames, busy %v, want to be done", len(list), o.busy)
	}
}
