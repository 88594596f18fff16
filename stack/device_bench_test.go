package stack_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

// sizes of the table in benchmarks.
var tableSizes = []int{1_000, 100_000}

func filledTable(b *testing.B, n int) *stack.Devices {
	d := stack.NewDevices(stack.DevicesOptions{})
	list := make([]stack.NewDevice, n)
	for i := range list {
		list[i].Name = fmt.Sprintf("dev%d", i)
	}
	if _, err := d.AddAll(list); err != nil {
		b.Fatal(err)
	}
	return d
}

func BenchmarkDevices(b *testing.B) {
	for _, n := range tableSizes {
		b.Run(fmt.Sprintf("rename/%d", n), func(b *testing.B) {
			d := filledTable(b, n)
			names := [2][]string{}
			for i := range n {
				names[0] = append(names[0], fmt.Sprintf("new%d", i))
				names[1] = append(names[1], fmt.Sprintf("dev%d", i))
			}
			var indexes []int
			for dev := range d.Table().All() {
				indexes = append(indexes, int(dev.Index()))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for k := range b.N {
				i := k % n
				if err := d.Rename(stackIndex(indexes[i]), names[k/n%2][i]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("delete+add/%d", n), func(b *testing.B) {
			d := filledTable(b, n)
			first := 1
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("dev%d", i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for k := range b.N {
				if err := d.Delete(stackIndex(first + k)); err != nil {
					b.Fatal(err)
				}
				if _, err := d.Add(stack.NewDevice{Name: names[k%n]}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("byname/%d", n), func(b *testing.B) {
			d := filledTable(b, n)
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("dev%d", i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for k := range b.N {
				if _, ok := d.ByName(names[k%n]); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

func stackIndex(i int) tcpip.NICID { return tcpip.NICID(i) }

// BenchmarkRenameLogged reports how much longer 1,000 renamings take with a
// logger that writes text to a file than with none: the median of pairs.
func BenchmarkRenameLogged(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	quiet, logged := thousand(b, nil), thousand(b, null)
	var ratios []float64
	for n := range b.N {
		off := quiet(n)
		on := logged(n)
		ratios = append(ratios, float64(on)/float64(off))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "on/off")
}

// thousand returns a function that renames 1,000 devices, each to a new name and
// back in turn, and returns how long that took.
func thousand(b *testing.B, log io.Writer) func(n int) time.Duration {
	opts := stack.DevicesOptions{}
	if log != nil {
		opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	d := stack.NewDevices(opts)
	b.Cleanup(d.Close)
	var names [2][]string
	for i := range 1000 {
		names[0], names[1] = append(names[0], fmt.Sprint("new", i)), append(names[1], fmt.Sprint("dev", i))
		mustAdd(b, d, stack.NewDevice{Name: names[1][i]})
	}
	return func(n int) time.Duration {
		began := time.Now()
		for i, name := range names[n%2] {
			if err := d.Rename(stackIndex(i+1), name); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
}
