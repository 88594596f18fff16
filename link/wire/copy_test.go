package wire_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// BenchmarkCopyLimit copies pieces of 64 KiB, as TCP does when it takes bytes
// from a writer and gives them to a reader, and prints the rate at which bytes
// are copied once: by one goroutine and by two, in a small piece of memory that
// stays in the first caches, and in one as large as the buffers of a connection.
func BenchmarkCopyLimit(b *testing.B) {
	const piece = 64 << 10
	for _, cores := range []int{1, 2} {
		for _, room := range []int{piece, 8 << 20} {
			b.Run(fmt.Sprintf("cores=%d/memory=%dKiB", cores, room>>10), func(b *testing.B) {
				var wg sync.WaitGroup
				used := processorTime(b)
				for range cores {
					wg.Go(func() {
						from, to := make([]byte, room), make([]byte, room)
						for i := range b.N {
							at := i * piece % room
							copy(to[at:at+piece], from[at:at+piece])
						}
					})
				}
				wg.Wait()
				reportRate(b, int64(b.N)*int64(cores)*piece, processorTime(b)-used)
			})
		}
	}
}

// BenchmarkCopy sends frames over a wire and prints how many bytes the wire
// copied for each byte it carried: those that the receiver finds in other memory
// than the sender had them in. TCP above it copies each byte twice, once from
// who writes and once to who reads; BenchmarkTCP beside BenchmarkCopyLimit says
// how near that comes to the limit.
func BenchmarkCopy(b *testing.B) {
	for _, payload := range []int{1400, 60000} {
		b.Run(fmt.Sprintf("payload=%d", payload), func(b *testing.B) {
			x, y, err := wire.New(wire.Options{Synchronous: true, B: wire.EndOptions{Promiscuous: true}})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			defer y.Close()
			frame := linktest.Flow4(0).TCP(linktest.Segment{Payload: make([]byte, payload)})
			pkt := linktest.GSOPacket(frame, 1448)
			defer pkt.DecRef()
			count := copyCounter{sent: pkt}
			y.Attach(&count)
			var list stack.PacketBufferList
			list.PushBack(pkt)
			used := processorTime(b)
			for b.Loop() {
				if _, err := x.WritePackets(list); err != nil {
					b.Fatal(err)
				}
			}
			reportRate(b, count.copied+count.shared, processorTime(b)-used)
			b.ReportMetric(float64(count.copied)/float64(count.copied+count.shared), "copies/B")
		})
	}
}

// copyCounter counts the bytes of received frames that are where the sender has
// them, and those that are not.
type copyCounter struct {
	sent           *stack.PacketBuffer
	copied, shared int64
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (c *copyCounter) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	views, _ := pkt.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		if c.has(v.AsSlice()) {
			c.shared += int64(v.Size())
		} else {
			c.copied += int64(v.Size())
		}
	}
}

// has is whether bytes are within the memory of the packet that was sent.
func (c *copyCounter) has(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	views, _ := c.sent.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		from := uintptr(unsafe.Pointer(v.BasePtr()))
		if from <= at && at < from+uintptr(v.Capacity()) {
			return true
		}
	}
	return false
}

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*copyCounter) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// reportRate prints the rate of bytes, and the processor time for a gigabyte.
func reportRate(b *testing.B, bytes int64, used time.Duration) {
	b.ReportMetric(float64(bytes)*8/b.Elapsed().Seconds()/1e9, "Gbit/s")
	b.ReportMetric(used.Seconds()/float64(bytes)*1e12, "CPU-ms/GB")
}
