package stack_test

import (
	"fmt"
	"testing"

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
