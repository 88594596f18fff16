package stack

import (
	"hash/maphash"
	"iter"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// DeviceTable is one version of a device table: it never changes. Its methods
// are for any number of goroutines, and none of them ever waits. Devices.Table
// returns the present version.
type DeviceTable struct {
	version uint64
	devices trie[*Device]
	byName  trie[nameEntry]
}

// nameEntry is a name, or alternative name, and whose it is.
type nameEntry struct {
	name  string
	index tcpip.NICID
	next  *nameEntry // another name with the same key
}

// Version returns the version's number. It rises with each change, so two
// tables of the same number are the same.
func (t *DeviceTable) Version() uint64 { return t.version }

// Len returns how many devices there are.
func (t *DeviceTable) Len() int { return t.devices.size }

// ByIndex returns the device of an index.
func (t *DeviceTable) ByIndex(index tcpip.NICID) (*Device, bool) {
	d := t.devices.get(uint64(uint32(index)))
	if d == nil {
		return nil, false
	}
	return *d, true
}

// ByName returns the device that has a name, or has it as an alternative name.
func (t *DeviceTable) ByName(name string) (*Device, bool) {
	e := t.entry(name)
	if e == nil {
		return nil, false
	}
	return t.ByIndex(e.index)
}

// All returns every device, in the order of the indexes.
func (t *DeviceTable) All() iter.Seq[*Device] {
	return func(yield func(*Device) bool) {
		t.devices.all(func(d **Device) bool { return yield(*d) })
	}
}

// names returns every name and alternative name.
func (t *DeviceTable) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		t.byName.all(func(e *nameEntry) bool {
			for ; e != nil; e = e.next {
				if !yield(e.name) {
					return false
				}
			}
			return true
		})
	}
}

// entry returns whose a name is, nil when it is nobody's.
func (t *DeviceTable) entry(name string) *nameEntry {
	e := t.byName.get(nameKey(name))
	for e != nil && e.name != name {
		e = e.next
	}
	return e
}

var nameSeed = maphash.MakeSeed()

// keyDigits is how many digits at a name's end are not hashed.
const keyDigits = 6

// nameKey returns the number under which a name is kept. It is a hash, but names
// that differ only in the number at their end are neighbours, and share their
// way through the trie: it is such names that come in thousands.
func nameKey(name string) uint64 {
	i := len(name)
	for i > 0 && len(name)-i < keyDigits && name[i-1]-'0' < 10 {
		i--
	}
	for i < len(name) && name[i] == '0' { // so that 7 and 07 differ
		i++
	}
	number := uint64(0)
	for _, c := range []byte(name[i:]) {
		number = 10*number + uint64(c-'0')
	}
	return maphash.String(nameSeed, name[:i])&^(1<<20-1) | number
}
