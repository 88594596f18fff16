package migrate

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// key is a key of a format that is an option of bonding.
type key struct {
	option string
	// read makes the text that Linux takes of the format's; nil leaves it.
	read func(text string) (string, error)
}

// text returns what Linux takes.
func (k key) text(of string) (string, error) {
	if k.read == nil {
		return strings.TrimSpace(of), nil
	}
	return k.read(of)
}

// switched reads the words for on and off. Other texts are left as they are.
func switched(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch strings.ToLower(text) {
	case "1", "yes", "true", "on", "y", "t":
		return "1", nil
	case "0", "no", "false", "off", "n", "f":
		return "0", nil
	}
	return text, nil
}

// commas reads a list that is separated by white space or commas.
func commas(text string) (string, error) {
	return strings.Join(splitList(text), ","), nil
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// units are systemd's names of spans of time, in microseconds.
var units = map[string]float64{
	"us": 1, "usec": 1, "µs": 1, "μs": 1,
	"ms": 1e3, "msec": 1e3,
	"s": 1e6, "sec": 1e6, "second": 1e6, "seconds": 1e6,
	"m": 60e6, "min": 60e6, "minute": 60e6, "minutes": 60e6,
	"h": 3600e6, "hr": 3600e6, "hour": 3600e6, "hours": 3600e6,
	"d": 86400e6, "day": 86400e6, "days": 86400e6,
	"w": 604800e6, "week": 604800e6, "weeks": 604800e6,
}

// span reads a sum of numbers with units, such as "1min 30s" or 200ms. A number
// without one is in units of bare. The result is in whole units of out.
func span(text string, bare, out float64) (string, error) {
	rest, sum := strings.TrimSpace(text), 0.0
	if rest == "" {
		return "", fmt.Errorf("%q is no span of time, such as 100ms", text)
	}
	for rest != "" {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		number, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return "", fmt.Errorf("%q is no span of time, such as 100ms", shorten(text))
		}
		rest = strings.TrimLeft(rest[n:], " \t")
		m := strings.IndexAny(rest, "0123456789. \t")
		if m < 0 {
			m = len(rest)
		}
		unit, known := units[rest[:m]]
		switch {
		case m == 0:
			unit = bare
		case !known:
			return "", fmt.Errorf("%q is no unit of time, such as ms or s", shorten(rest[:m]))
		}
		sum += number * unit
		rest = strings.TrimLeft(rest[m:], " \t")
	}
	sum /= out
	if sum != math.Trunc(sum) || sum > math.MaxUint32 {
		return "", fmt.Errorf("%q is not a whole number of %s", shorten(text), map[float64]string{1e3: "milliseconds", 1e6: "seconds"}[out])
	}
	return strconv.FormatUint(uint64(sum), 10), nil
}

const (
	millisecond = 1e3
	second      = 1e6
)

func secondsToMillis(text string) (string, error)  { return span(text, second, millisecond) }
func secondsToSeconds(text string) (string, error) { return span(text, second, second) }
func millisToMillis(text string) (string, error)   { return span(text, millisecond, millisecond) }

// withMask joins an address and its mask or prefix length, where it has not one
// itself.
func withMask(address, mask string) string {
	if mask == "" || strings.Contains(address, "/") {
		return address
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return address + "/" + mask
	}
	bits := m.As4()
	v := uint32(bits[0])<<24 | uint32(bits[1])<<16 | uint32(bits[2])<<8 | uint32(bits[3])
	ones := 0
	for v&(1<<31) != 0 {
		v <<= 1
		ones++
	}
	if v != 0 {
		return address + "/" + mask // not a mask: refused later
	}
	return address + "/" + strconv.Itoa(ones)
}
