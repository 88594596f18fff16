package bonding

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"bondstack/bonding/probe"
)

// ARPValidate is which received frames are evidence that a link works.
type ARPValidate uint8

// The values of arp_validate. A frame is validated if it is an answer of a target,
// or, on a backup, our own probe on its way to one.
const (
	ValidateNone         ARPValidate = 0 // any frame
	ValidateActive       ARPValidate = 1 // validated ones on the active slave, any on backups
	ValidateBackup       ARPValidate = 2 // validated ones on backups, any on the active slave
	ValidateAll          ARPValidate = 3 // validated ones
	ValidateFilter       ARPValidate = 4 // any ARP or IPv6 frame
	ValidateFilterActive ARPValidate = 5 // validated ones on the active slave, any ARP or IPv6 frame on backups
	ValidateFilterBackup ARPValidate = 6 // the other way round
)

var validateNames = []string{"none", "active", "backup", "all", "filter", "filter_active", "filter_backup"}

// String returns Linux's name.
func (v ARPValidate) String() string { return nameOf(validateNames, uint64(v)) }

// covers reports whether frames of a slave in a role are validated.
func (v ARPValidate) covers(backup bool) bool {
	if backup {
		return v&ValidateBackup != 0
	}
	return v&ValidateActive != 0
}

// filters reports whether only ARP and IPv6 frames are evidence where frames are
// not validated.
func (v ARPValidate) filters() bool { return v&ValidateFilter != 0 }

// arpConfig are the options of the ARP monitor. The lists are replaced, never
// changed in place.
type arpConfig struct {
	interval   time.Duration // 0: off
	targets    probe.Targets
	validate   ARPValidate
	allTargets bool
	missedMax  uint32
}

const defaultMissedMax = 2

// setMIIMon sets miimon, and ends the other monitor unless both may run.
func (c *config) setMIIMon(v uint64) {
	c.miimon = time.Duration(v) * time.Millisecond
	if v > 0 && c.arp.interval > 0 && c.rule == MonitorExclusive {
		c.arp.interval, c.arp.validate = 0, ValidateNone
	}
}

// setARPInterval sets arp_interval, and ends the other monitor unless both may
// run.
func (c *config) setARPInterval(v uint64) {
	c.arp.interval = time.Duration(v) * time.Millisecond
	if v > 0 && c.rule == MonitorExclusive {
		c.miimon = 0
	}
}

// monitorsOfMode fits the monitors to a mode that was set: those that need
// speeds have no ARP monitor, and are not left without any; what is validated is
// chosen anew.
func (c *config) monitorsOfMode() {
	c.arp.validate = ValidateNone
	if c.mode.info().arp {
		return
	}
	c.arp.interval = 0
	if c.miimon == 0 {
		c.miimon = defaults().miimon
	}
}

func arpInterval() option {
	o := numeric("arp_interval", fromZero(int31, 0), (*config).setARPInterval,
		func(c *config) uint64 { return ms(c.arp.interval) })
	o.modes = arpModes
	return o
}

var validateNumber = keywords(validateNames...)

func arpValidate() option {
	o := keyword("arp_validate", validateNumber, func(c *config) *uint8 { return (*uint8)(&c.arp.validate) })
	o.modes = arpModes
	return o
}

func arpAllTargets() option {
	return numeric("arp_all_targets", keywords("any", "all"), func(c *config, v uint64) { c.arp.allTargets = v == 1 },
		func(c *config) uint64 { return bit(c.arp.allTargets) })
}

func arpMissedMax() option {
	o := counter("arp_missed_max", number{least: 1, greatest: 255, names: []named{minval(1), maxval(255), byDefault(defaultMissedMax)}},
		func(c *config) *uint32 { return &c.arp.missedMax })
	o.modes = arpModes
	return o
}

// targets is a list of at most 16 addresses of one family. It is given whole,
// separated by commas or white space as netlink has it, or as changes: +ADDRESS
// and -ADDRESS, as sysfs has them.
func targets(name, family string, field func(*config) *[]netip.Addr, check func(netip.Addr) bool) option {
	return option{name: name,
		set: func(ch *change, text string) error {
			list, err := changeTargets(*field(&ch.config), targetWords(text), check)
			if err != nil {
				reason := family + " addresses, at most 16, as a list, or with + and - as changes of it"
				return &OptionError{Reason: err.Error() + "; allowed are " + reason, Err: errors.Unwrap(err)}
			}
			if len(list) == 0 && len(*field(&ch.config)) > 0 && ch.arp.interval > 0 {
				ch.warn("%s: the last target was removed, but arp_interval is set", name)
			}
			*field(&ch.config) = list
			return nil
		},
		get: func(c *config) string {
			return strings.Join(addressTexts(*field(c)), " ")
		}}
}

func arpIPTarget() option {
	return targets("arp_ip_target", "IPv4", func(c *config) *[]netip.Addr { return &c.arp.targets.V4 }, func(a netip.Addr) bool {
		return a.Is4() && !a.IsUnspecified() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
	})
}

func nsIP6Target() option {
	return targets("ns_ip6_target", "IPv6", func(c *config) *[]netip.Addr { return &c.arp.targets.V6 }, func(a netip.Addr) bool {
		return a.Is6() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
	})
}

func targetWords(text string) []string {
	return strings.FieldsFunc(firstLine(text), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// targetError is what is wrong with a list of targets.
type targetError struct {
	reason string
	kind   error
}

func (e *targetError) Error() string { return e.reason }
func (e *targetError) Unwrap() error { return e.kind }

// changeTargets returns the list that words make of an old one. The first word
// decides whether they are the list itself or changes.
func changeTargets(old []netip.Addr, words []string, check func(netip.Addr) bool) ([]netip.Addr, error) {
	fail := func(kind error, word, reason string) ([]netip.Addr, error) {
		return nil, &targetError{word + " " + reason, kind}
	}
	var list []netip.Addr
	signed := len(words) > 0 && strings.ContainsAny(words[0][:1], "+-")
	syntax := ErrInvalid
	if signed {
		list = slices.Clone(old)
		syntax = ErrPrecondition // sysfs
	}
	for _, word := range words {
		sign, text := byte('+'), word
		if signed {
			sign, text = word[0], word[1:]
		}
		a, err := netip.ParseAddr(text)
		i := slices.Index(list, a)
		switch {
		case err != nil || sign != '+' && sign != '-':
			return fail(syntax, word, "is no address")
		case !check(a):
			return fail(ErrInvalid, word, "cannot be a target")
		case sign == '-' && i < 0:
			return fail(ErrInvalid, word, "is not among the targets")
		case sign == '-':
			list = slices.Delete(list, i, i+1)
		case i >= 0:
			return fail(ErrInvalid, word, "is a target already")
		case len(list) == probe.MaxTargets:
			return fail(ErrInvalid, word, "is one target too many")
		default:
			list = append(list, a)
		}
	}
	return list, nil
}

func addressTexts(list []netip.Addr) []string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = a.String()
	}
	return texts
}
