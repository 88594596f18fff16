package vnet

import (
	"bytes"
	"testing"
)

// TestViewsOfEveryLength receives frames of lengths around each bound, with a
// tag put back or not, one after another in the same memory.
func TestViewsOfEveryLength(t *testing.T) {
	reserve := NewReserve(4 * bodySize)
	defer reserve.Release()
	var pattern []byte
	for i := range Room() {
		pattern = append(pattern, byte(i*7+i>>8))
	}
	for _, r := range []*Reserve{nil, reserve} {
		v := Views{Reserve: r}
		for _, size := range []int{14, 60, headSize - Headroom - 1, headSize - Headroom, headSize, 1514,
			copyLimit, copyLimit + headSize - Headroom, copyLimit + headSize, 65549, Room()} {
			for _, restored := range []bool{false, true} {
				v.Prepare(nil)
				v.Fill(pattern[:size])
				want, length := pattern[:size], size
				if restored {
					copy(v.First(), "tags")
					want = append([]byte("tags"), want...)
					length += Headroom
				}
				parts := v.Frame(length, restored)
				if got := bytes.Join(parts, nil); !bytes.Equal(got, want) {
					t.Fatalf("size %d, restored %v: Frame has %d other bytes", size, restored, len(got))
				}
				b := v.Take(parts)
				v.Prepare(nil)
				v.Fill(make([]byte, Room())) // the next frame
				if got := b.Flatten(); !bytes.Equal(got, want) {
					t.Fatalf("size %d, restored %v: Take gave %d other bytes", size, restored, len(got))
				}
				b.Release()
			}
		}
		v.Release()
	}
}

// TestShortFramesHoldNoChunk: one that is copied leaves its chunk in place.
func TestShortFramesHoldNoChunk(t *testing.T) {
	v := Views{}
	defer v.Release()
	v.Prepare(nil)
	at := v.body.BasePtr()
	for _, c := range []struct {
		size int
		kept bool
	}{{100, true}, {1514, true}, {copyLimit, true}, {copyLimit + headSize, false}} {
		b := v.Take(v.Frame(c.size, false))
		v.Prepare(nil)
		if kept := v.body.BasePtr() == at; kept != c.kept {
			t.Errorf("frame of %d bytes: the chunk is kept %v, want %v", c.size, kept, c.kept)
		}
		b.Release()
	}
}
