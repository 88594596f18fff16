package bonding_test

import (
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"
)

// BenchmarkReleaseEnslave measures what it costs the control side that a third
// slave goes and comes back. A storm of them a thousand times a second (`bondstack
// bench --storm`) takes as many thousandths of a processor as this takes
// microseconds.
func BenchmarkReleaseEnslave(b *testing.B) {
	for _, m := range append(writeModes[:len(writeModes):len(writeModes)], struct {
		name string
		opts bonding.Options
	}{"802.3ad", bonding.Options{Mode: bonding.IEEE8023AD, XmitHashPolicy: xmithash.Layer34}}) {
		b.Run(m.name, func(b *testing.B) {
			bond := benchBond(b, m.opts)
			third := linktest.NewNull(linktest.NullOptions{GSO: true})
			b.ReportAllocs()
			for b.Loop() {
				if err := bond.Enslave("eth2", third, bonding.SlaveOptions{}); err != nil {
					b.Fatal(err)
				}
				if err := bond.Release("eth2"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
