package bonding

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding/nearest"
)

// apply sets options on ch, in the order of the table, and returns every fault
// in one error. ch is of no use after an error.
func (ch *change) apply(values map[string]string) error {
	var errs []error
	for name, text := range values {
		if findOption(name) == nil {
			errs = append(errs, unknownOption(name, text))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for i := range optionTable {
		o := &optionTable[i]
		for _, name := range []string{o.name, o.alias} {
			text, given := values[name]
			if !given || name == "" {
				continue
			}
			if err := ch.set(o, name, text); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := ch.exclusive(values); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// set checks one option in Linux's order (mode, empty, down, value, its own
// rules) and sets it.
func (ch *change) set(o *option, name, text string) error {
	fail := func(reason string, kind error) error { return &OptionError{name, text, reason, kind} }
	switch {
	case o.modes != nil && !slices.Contains(o.modes, ch.mode):
		return fail("the mode is "+ch.mode.String()+"; it may be set in "+joinModes(o.modes), ErrMode)
	case o.empty && len(ch.slaves) > 0:
		return fail("release the "+strconv.Itoa(len(ch.slaves))+" slaves first", ErrNotEmpty)
	case o.down && ch.up:
		return fail("remove the bond's NIC first", ErrUp)
	}
	err := o.set(ch, text)
	var oe *OptionError
	if errors.As(err, &oe) {
		return fail(oe.Reason, oe.Err)
	}
	return err
}

func joinModes(modes []Mode) string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.String()
	}
	return strings.Join(names, ", ")
}

// modeNumber reads and shows a mode.
var modeNumber = func() number {
	var names []string
	for i := range modes {
		names = append(names, modes[i].name)
	}
	return keywords(names...)
}()

func setMode(ch *change, text string) error {
	v, ok := modeNumber.parse(text)
	if !ok {
		return &OptionError{Reason: "allowed are " + strings.Join(ModeNames(), ", "), Err: ErrInvalid}
	}
	ch.mode = Mode(v)
	ch.monitorsOfMode()
	ch.lacp.broadcastNeighbor = false // as in Linux
	return nil
}

// firstLine is what Linux reads of a text that is a name.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// setPrimary keeps the name whether or not such a slave is there: it is
// matched when one is enslaved.
func setPrimary(ch *change, text string) error {
	name := firstLine(text)
	if name != "" {
		if err := CheckName(name); err != nil {
			return &OptionError{Reason: err.Error(), Err: ErrInvalid}
		}
	}
	ch.primary = name
	ch.primaryAgain = true
	return nil
}

func setActiveSlave(ch *change, text string) error {
	name := firstLine(text)
	ch.activate = &name
	if name == "" {
		return nil
	}
	s := ch.slave(name)
	switch {
	case s == nil:
		return &OptionError{Reason: "the slaves are " + ch.slaveNames(), Err: ErrNoSlave}
	case s == ch.active:
	case s.standsBack:
		return &OptionError{Reason: "the slave is drained, or held back by flap_backoff", Err: ErrInvalid}
	case ch.active == nil:
		return &OptionError{Reason: "there is no active slave to take over from", Err: ErrInvalid}
	case s.link != linkUp || !s.usable():
		return &OptionError{Reason: "the slave's link is " + s.link.String(), Err: ErrInvalid}
	}
	return nil
}

// setQueueID reads name:id. The last colon separates.
func setQueueID(ch *change, text string) error {
	text = firstLine(text)
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return &OptionError{Reason: "the form is SLAVE:ID", Err: ErrPrecondition}
	}
	name := text[:i]
	id, err := strconv.ParseUint(text[i+1:], 10, 16)
	if err != nil || id > maxQueueID {
		return &OptionError{Reason: "the id is 0 to " + strconv.Itoa(maxQueueID), Err: ErrPrecondition}
	}
	if ch.slave(name) == nil {
		return &OptionError{Reason: "the slaves are " + ch.slaveNames(), Err: ErrPrecondition}
	}
	for _, s := range ch.slaves {
		if id != 0 && s.name != name && s.queueID == uint16(id) {
			return &OptionError{Reason: "slave " + s.name + " has this id", Err: ErrPrecondition}
		}
	}
	if ch.queues == nil {
		ch.queues = map[string]uint16{}
	}
	ch.queues[name] = uint16(id)
	return nil
}

func (ch *change) slave(name string) *slave {
	for _, s := range ch.slaves {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (ch *change) slaveNames() string {
	names := make([]string, len(ch.slaves))
	for i, s := range ch.slaves {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// SetOption sets one option of a live bond by its Linux name, as text. A value
// that is refused changes nothing; the *OptionError says what is allowed.
func (b *Bond) SetOption(name, value string) error {
	return b.SetOptions(map[string]string{name: value})
}

// SetOptions sets several options as one change: all of them, in the order in
// which Linux applies a netlink message, or none. The data path sees one swap.
// The error names every fault.
func (b *Bond) SetOptions(values map[string]string) error {
	var err error
	b.control(func(now instant) {
		if b.closed {
			err = ErrClosed
			return
		}
		ch := change{config: b.config, up: b.dispatcher != nil, slaves: b.slaves, active: b.active}
		if err = ch.apply(values); err == nil {
			b.take(&ch, now)
		}
	})
	return err
}

// unknownOption is the error of a name that no option has: it says which was meant,
// where one is near, and lists the known names.
func unknownOption(name, text string) error {
	known := OptionNames()
	reason := "known are " + strings.Join(known, ", ")
	for i := range optionTable {
		if alias := optionTable[i].alias; alias != "" {
			known = append(known, alias)
		}
	}
	if near := nearest.Word(name, known); near != "" {
		reason = "did you mean " + near + "? " + reason
	}
	return &OptionError{name, text, reason, ErrUnknownOption}
}

// Option returns an option's value as Linux's sysfs shows it. The error lists
// the known names.
func (b *Bond) Option(name string) (string, error) {
	o := findOption(name)
	if o == nil {
		return "", unknownOption(name, "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.get != nil:
		return o.get(&b.config), nil
	case o.name == "active_slave":
		return b.active.displayName(""), nil
	case o.name == "weight":
		return showWeights(b.slaves), nil
	default: // queue_id
		ids := make([]string, len(b.slaves))
		for i, s := range b.slaves {
			ids[i] = s.name + ":" + strconv.Itoa(int(s.queueID))
		}
		return strings.Join(ids, " "), nil
	}
}

// take makes a checked change the bond's configuration, and does what its
// options ask for.
func (b *Bond) take(ch *change, now instant) {
	old := b.config
	b.config = ch.config
	b.dirty = true
	for _, w := range ch.warnings {
		b.warn("%s", w)
	}
	for name, id := range ch.queues {
		ch.slave(name).queueID = id
	}
	for name, weight := range ch.weights {
		ch.slave(name).weight = weight
	}
	if old.allSlavesActive != b.config.allSlavesActive {
		b.receiveOnBackups()
	}
	if b.config.flapBackoff == 0 {
		b.forgetFlaps()
	}
	if old.miimon != b.config.miimon {
		b.miimonChanged(now)
	}
	if was, is := &old.arp.targets, &b.config.arp.targets; !slices.Equal(was.V4, is.V4) || !slices.Equal(was.V6, is.V6) {
		b.moveEvidence(was, now)
	}
	if old.monitors() != b.config.monitors() || old.rule != b.config.rule {
		b.monitorsChanged()
	}
	if ch.primaryAgain {
		b.rematchPrimary()
	}
	if ch.activate != nil {
		b.activate(*ch.activate, now)
	}
	if ch.primaryAgain || old.reselect != b.config.reselect {
		b.reselect(now)
	}
}
