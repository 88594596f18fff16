package socks

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	for _, c := range []struct {
		bytes, command, to string
	}{
		{"\x05\x01\x00\x01\x0a\x00\x00\x02\x00\x50", "1", "10.0.0.2:80"},
		{"\x05\x03\x00\x04\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01\xbb", "3", "[fd00::2]:443"},
		{"\x05\x01\x00\x03\x0bserver.test\x1f\x90", "1", "server.test:8080"},
		{"\x05\x01\x00\x03\x0810.0.0.2\x00\x50", "1", "10.0.0.2:80"},
		{"\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x02\x00\x50", "1", "10.0.0.2:80"},
	} {
		r := strings.NewReader(c.bytes + "more")
		command, to, err := readRequest(r)
		if err != nil || string('0'+command) != c.command || to.String() != c.to || r.Len() != 4 {
			t.Errorf("%q is %d to %s with %d bytes left, %v", c.bytes, command, to, r.Len(), err)
		}
		for cut := range len(c.bytes) {
			if _, _, err := readRequest(strings.NewReader(c.bytes[:cut])); err == nil {
				t.Errorf("%q passes", c.bytes[:cut])
			}
		}
	}
	if _, _, err := readRequest(strings.NewReader("\x04\x01\x00\x01\x0a\x00\x00\x02\x00\x50")); !errors.Is(err, errVersion) {
		t.Errorf("version 4: %v", err)
	}
	if _, _, err := readRequest(strings.NewReader("\x05\x01\x00\x02\x0a\x00\x00\x02\x00\x50")); !errors.Is(err, errType) {
		t.Errorf("type 2: %v", err)
	}
	if _, _, err := readRequest(strings.NewReader("\x05\x01\x00\x03\x00\x00\x50")); err == nil {
		t.Error("an empty name passes")
	}
}

func TestDatagram(t *testing.T) {
	at := netip.MustParseAddrPort("[fd00::2]:53")
	b := appendDatagram(nil, at, []byte("payload"))
	if to, payload, err := parseDatagram(b); err != nil || to.String() != at.String() || string(payload) != "payload" {
		t.Errorf("%v, %q, %v", to, payload, err)
	}
	b[2] = 1
	if _, _, err := parseDatagram(b); err == nil || !strings.Contains(err.Error(), "fragment") {
		t.Errorf("a fragment: %v", err)
	}
}

// Nothing that a client sends makes the readers panic, and what they accept is the
// same when it is written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x05\x02\x00\x02"))
	f.Add([]byte("\x01\x04user\x08password"))
	f.Add([]byte("\x05\x01\x00\x03\x0bserver.test\x1f\x90"))
	f.Add([]byte("\x00\x00\x00\x01\x0a\x00\x00\x02\x00\x35payload"))
	f.Fuzz(func(t *testing.T, b []byte) {
		readMethods(bytes.NewReader(b), methodNone)
		if user, password, err := readPassword(bytes.NewReader(b)); err == nil && len(user)+len(password)+3 > len(b) {
			t.Errorf("%q and %q of %d bytes", user, password, len(b))
		}
		readRequest(bytes.NewReader(b))
		to, payload, err := parseDatagram(b)
		if err != nil || to.name != "" {
			return
		}
		again, rest, err := parseDatagram(appendDatagram(nil, netip.AddrPortFrom(to.ip, to.port), payload))
		if err != nil || again != to || !bytes.Equal(rest, payload) {
			t.Errorf("%v with %q became %v with %q, %v", to, payload, again, rest, err)
		}
	})
}
