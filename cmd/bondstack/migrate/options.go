package migrate

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding"
)

// own are the options that Linux does not have, so that no format has a key for
// them.
var own = []string{"monitor_rule", "xmit_hash_map", "weight", "probe_interval", "probe_missed_max", "flap_backoff",
	"ipv6_receive_balance", "rx_dedup", "rx_reorder", "rx_reorder_hold", "rx_reorder_bytes", "rx_reorder_flows"}

const ownReason = "bondstack's own: Linux has none"

// absent makes the table of the options that a format has no key for: those
// named, and bondstack's own.
func absent(reason string, options ...string) map[string]string {
	table := map[string]string{}
	for _, o := range options {
		table[o] = reason
	}
	for _, o := range own {
		table[o] = ownReason
	}
	return table
}

// check makes the options of a bond of what was set. What a bond would refuse is
// left out, and told with the bond's own reason.
func (r *reader) check(i *iface, mode bonding.Mode, settings []optionSetting, slaves []string) map[string]string {
	values := map[string]string{}
	for _, o := range settings {
		if i.dump && isDefault(mode, o.name, o.text) {
			continue
		}
		if o.name == "active_slave" && !slices.Contains(slaves, o.text) {
			r.lost(o.from, "no slave has the name")
			continue
		}
		values[o.name] = o.text
	}
	active, hasActive := values["active_slave"]
	delete(values, "active_slave") // which wants slaves
	for len(values) > 0 {
		b, err := tryOptions(mode, values)
		if err == nil {
			for name, text := range values {
				values[name] = canonical(b, name, text)
			}
			b.Close()
			break
		}
		if !r.refuse(settings, values, err) {
			break
		}
	}
	if hasActive {
		_, err := tryOptions(mode, map[string]string{"active_slave": active})
		if errors.Is(err, bonding.ErrMode) {
			r.refuse(settings, map[string]string{"active_slave": active}, err)
		} else {
			values["active_slave"] = active
		}
	}
	return values
}

// tryOptions sets options on a bond of a mode. Without an error the caller closes
// the bond.
func tryOptions(mode bonding.Mode, values map[string]string) (*bonding.Bond, error) {
	b, err := bonding.New(bonding.Options{Mode: mode})
	if err != nil {
		return nil, err
	}
	if err := b.SetOptions(values); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// refuse takes the options out that an error names, and lists them. It reports
// whether there were any.
func (r *reader) refuse(settings []optionSetting, values map[string]string, err error) bool {
	any := false
	for _, fault := range optionErrors(err) {
		if _, ok := values[fault.Option]; !ok {
			continue
		}
		any = true
		delete(values, fault.Option)
		for _, o := range settings {
			if o.name == fault.Option {
				r.lost(o.from, fault.Reason)
			}
		}
	}
	return any
}

// optionErrors returns the errors of options in a joined error.
func optionErrors(err error) []*bonding.OptionError {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*bonding.OptionError
		for _, e := range list.Unwrap() {
			all = append(all, optionErrors(e)...)
		}
		return all
	}
	var one *bonding.OptionError
	if errors.As(err, &one) {
		return []*bonding.OptionError{one}
	}
	return nil
}

// canonical returns the value of an option that was set on b: a keyword for its
// number, commas in a list, else the text as it was.
func canonical(b *bonding.Bond, name, text string) string {
	shown, err := b.Option(name)
	fields := strings.Fields(shown)
	switch {
	case err != nil || len(fields) == 0:
	case isTargets(name):
		return strings.Join(fields, ",")
	case len(fields) == 2:
		return fields[0]
	case !slices.Contains(delays, name) || strings.Trim(text, "0123456789 ") != "": // which are shown rounded
		return shown
	}
	return strings.TrimSpace(text)
}

var delays = []string{"updelay", "downdelay", "peer_notif_delay"}

// isDefault reports whether a bond of the mode has a value anyway. Where the mode
// does not allow the option, those of other modes tell.
func isDefault(mode bonding.Mode, name, text string) bool {
	for _, m := range append([]bonding.Mode{mode}, bonding.AvailableModes()...) {
		if m == bonding.Broadcast && m != mode {
			continue // no option is of this mode alone, and such a bond is large
		}
		b, err := tryOptions(m, nil)
		if err != nil {
			return false
		}
		usual := canonical(b, name, "")
		err = b.SetOption(name, text)
		is := canonical(b, name, text)
		b.Close()
		if err == nil {
			return is == usual || usual == "" && is == "0"
		}
	}
	return false
}

// number reads a number in a range.
func number(text string, least, greatest int64) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < least || v > greatest {
		return 0, errors.New("allowed are " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(greatest, 10))
	}
	return v, nil
}
