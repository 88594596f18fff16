// Package capture writes what a bond captures as pcapng, for Wireshark and tshark: an
// interface for each slave, and one for the bond; whether a frame was sent or received
// is in the packet's flags and comment. Filters are in
// tcpdump's language.
package capture

import (
	"context"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"bondstack/bonding"
)

// Source is what is written: a *bonding.Capture.
type Source interface {
	Next(context.Context) (bonding.Captured, bool)
	Dropped() uint64
}

// Options say how.
type Options struct {
	// Bond names the interface of frames without a slave.
	Bond string
	// SnapLen is noted in the file.
	SnapLen int
	// Filter decides which frames are written; nil: all.
	Filter Filter
	// Count ends the writing after that many frames; 0: never.
	Count uint64
	// Flush is called after each frame, so that a reader sees it; nil where that is
	// not wanted.
	Flush func() error
}

// Totals are what became of the frames.
type Totals struct {
	Written, Filtered, Dropped uint64
}

// writer is one writing.
type writer struct {
	ng         *pcapgo.NgWriter
	options    Options
	interfaces map[string]int
}

// Write writes frames until the source or the context ends, there are enough, or
// writing fails.
func Write(ctx context.Context, to io.Writer, from Source, o Options) (t Totals, err error) {
	w := writer{options: o, interfaces: map[string]int{o.Bond: 0}}
	section := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "bondstack"}}
	if w.ng, err = pcapgo.NewNgWriterInterface(to, w.interfaceOf(o.Bond), section); err != nil {
		return t, err
	}
	if err := w.flush(); err != nil { // so that a reader knows that it has begun
		return t, err
	}
	for o.Count == 0 || t.Written < o.Count {
		f, ok := from.Next(ctx)
		if !ok {
			break
		}
		if o.Filter != nil && !o.Filter(f.Data) {
			t.Filtered++
			continue
		}
		if err := w.frame(f); err != nil {
			return t, err
		}
		t.Written++
	}
	t.Dropped = from.Dropped()
	return t, w.end(t)
}

// end notes in the file how many frames were lost.
func (w *writer) end(t Totals) error {
	err := w.ng.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		PacketsReceived: t.Written + t.Filtered + t.Dropped, PacketsDropped: t.Dropped,
		Comment: "of all interfaces together",
	})
	if err != nil {
		return err
	}
	return w.flush()
}

func (w *writer) interfaceOf(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, SnapLength: uint32(w.options.SnapLen), TimestampResolution: 9}
}

func (w *writer) frame(f bonding.Captured) error {
	name := f.Slave
	if name == "" {
		name = w.options.Bond
	}
	id, ok := w.interfaces[name]
	if !ok {
		var err error
		if id, err = w.ng.AddInterface(w.interfaceOf(name)); err != nil {
			return err
		}
		w.interfaces[name] = id
	}
	direction, word := pcapgo.NgEpbFlagDirectionInbound, "received"
	if f.Out {
		direction, word = pcapgo.NgEpbFlagDirectionOutbound, "sent"
	}
	info := gopacket.CaptureInfo{Timestamp: f.Time, CaptureLength: len(f.Data), Length: f.Length, InterfaceIndex: id}
	err := w.ng.WritePacketWithOptions(info, f.Data, pcapgo.NgPacketOptions{
		Comments: []string{fmt.Sprintf("%s %s", name, word)},
		Flags:    &pcapgo.NgEpbFlags{Direction: direction},
	})
	if err != nil {
		return err
	}
	return w.flush()
}

func (w *writer) flush() error {
	if w.options.Flush == nil {
		return w.ng.Flush()
	}
	if err := w.ng.Flush(); err != nil {
		return err
	}
	return w.options.Flush()
}
