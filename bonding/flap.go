package bonding

import "time"

// maxFlapBackoff is the greatest value of flap_backoff, in milliseconds.
const maxFlapBackoff = 600000

// flapSteps is how often the time of flap_backoff doubles.
const flapSteps = 6

// flapGuard counts the losses of a slave that follow one another, for
// flap_backoff. The first loss costs nothing; the second holds the slave back
// for the option's time, counted from the loss, and each further one for twice
// the time before, up to 64 times the option's. Each 64 times the option's
// without a loss are one loss forgotten.
type flapGuard struct {
	losses uint32
	last   instant // of the last loss, or of the last one forgotten since
	until  instant // the slave is held back until then
}

// lost counts a loss.
func (f *flapGuard) lost(now instant, base time.Duration) {
	if base == 0 {
		*f = flapGuard{}
		return
	}
	f.forget(now, base)
	f.losses = min(f.losses+1, flapSteps+2)
	f.last = now
	if f.losses >= 2 {
		f.until = now.add(base << (f.losses - 2))
	}
}

// forget takes off the losses that are long ago.
func (f *flapGuard) forget(now instant, base time.Duration) {
	window := instant(base << flapSteps)
	for f.losses > 0 && now-f.last >= window {
		f.losses--
		f.last += window
	}
}

// holds reports whether the slave is held back.
func (f *flapGuard) holds(now instant) bool { return now < f.until }

// left is how long the slave is held back yet.
func (f *flapGuard) left(now instant) time.Duration { return time.Duration(max(f.until-now, 0)) }

// forgetFlaps is flap_backoff being turned off.
func (b *Bond) forgetFlaps() {
	for _, s := range b.slaves {
		s.flap = flapGuard{}
	}
}
