package packet

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// placeHeaderSize is how much of a place the kernel's description takes.
const placeHeaderSize = int(unsafe.Sizeof(unix.Tpacket2Hdr{}))

// header returns the kernel's description of the frame in a place.
func (p ringPlace) header() *unix.Tpacket2Hdr { return (*unix.Tpacket2Hdr)(unsafe.Pointer(&p[0])) }

// status returns the place's status (TP_STATUS_...). What the kernel wrote before
// it is seen after it.
func (p ringPlace) status() uint32 { return atomic.LoadUint32(&p.header().Status) }

// giveBack gives the place back to the kernel.
func (p ringPlace) giveBack() { atomic.StoreUint32(&p.header().Status, unix.TP_STATUS_KERNEL) }
