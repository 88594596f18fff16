package socks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
)

// Numbers of RFC 1928 and RFC 1929.
const (
	version     = 5
	authVersion = 1

	methodNone     = 0x00
	methodPassword = 0x02
	methodNoneFits = 0xff

	commandConnect   = 1
	commandBind      = 2
	commandAssociate = 3

	typeIPv4 = 1
	typeName = 3
	typeIPv6 = 4
)

// replyCode is how a request went (RFC 1928, section 6).
type replyCode byte

const (
	succeeded           replyCode = 0
	generalFailure      replyCode = 1
	notAllowed          replyCode = 2
	networkUnreachable  replyCode = 3
	hostUnreachable     replyCode = 4
	connectionRefused   replyCode = 5
	commandNotSupported replyCode = 7
	typeNotSupported    replyCode = 8
)

var errVersion = errors.New("not SOCKS version 5")

// address is a destination: an IP address, or a name.
type address struct {
	ip   netip.Addr // the zero Addr where there is a name
	name string
	port uint16
}

func (a address) String() string {
	if a.name != "" {
		return a.name + ":" + strconv.Itoa(int(a.port))
	}
	return netip.AddrPortFrom(a.ip, a.port).String()
}

// readMethods reads the client's greeting and reports whether it offers a method.
func readMethods(r io.Reader, method byte) (offered bool, err error) {
	var b [255]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return false, err
	}
	if b[0] != version {
		return false, errVersion
	}
	methods := b[:b[1]]
	if _, err := io.ReadFull(r, methods); err != nil {
		return false, err
	}
	for _, m := range methods {
		offered = offered || m == method
	}
	return offered, nil
}

// readPassword reads a request of RFC 1929.
func readPassword(r io.Reader) (user, password string, err error) {
	var v [1]byte
	if _, err := io.ReadFull(r, v[:]); err != nil {
		return "", "", err
	}
	if v[0] != authVersion {
		return "", "", fmt.Errorf("version %d of the password's request, want %d", v[0], authVersion)
	}
	if user, err = readString(r); err != nil {
		return "", "", err
	}
	password, err = readString(r)
	return user, password, err
}

// readString reads a string after a byte that is its length.
func readString(r io.Reader) (string, error) {
	var b [255]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return "", err
	}
	s := b[:b[0]]
	_, err := io.ReadFull(r, s)
	return string(s), err
}

// errType says that an address has a type that there is not.
var errType = errors.New("address type is none of 1 (IPv4), 3 (name), 4 (IPv6)")

// readRequest reads a request of section 4.
func readRequest(r io.Reader) (command byte, to address, err error) {
	var b [3]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, address{}, err
	}
	if b[0] != version {
		return 0, address{}, errVersion
	}
	to, err = readAddress(r)
	return b[1], to, err
}

// readAddress reads a type, an address and a port.
func readAddress(r io.Reader) (a address, err error) {
	var b [16]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return a, err
	}
	switch b[0] {
	case typeIPv4:
		_, err = io.ReadFull(r, b[:4])
		a.ip = netip.AddrFrom4([4]byte(b[:4]))
	case typeIPv6:
		_, err = io.ReadFull(r, b[:16])
		a.ip = netip.AddrFrom16(b).Unmap()
	case typeName:
		if a.name, err = readString(r); err == nil && a.name == "" {
			err = errors.New("the name is empty")
		}
	default:
		err = errType
	}
	if err != nil {
		return address{}, err
	}
	if a.name != "" {
		// Clients give literal addresses as names, too.
		if ip, err := netip.ParseAddr(a.name); err == nil && ip.Zone() == "" {
			a.ip, a.name = ip.Unmap(), ""
		}
	}
	_, err = io.ReadFull(r, b[:2])
	a.port = binary.BigEndian.Uint16(b[:])
	return a, err
}

// appendAddress appends a type, an address and a port. The zero Addr is 0.0.0.0.
func appendAddress(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr().Unmap()
	switch {
	case !ip.IsValid():
		b = append(b, typeIPv4, 0, 0, 0, 0)
	case ip.Is4():
		b = append(append(b, typeIPv4), ip.AsSlice()...)
	default:
		b = append(append(b, typeIPv6), ip.AsSlice()...)
	}
	return binary.BigEndian.AppendUint16(b, a.Port())
}

// appendReply appends a reply (section 6).
func appendReply(b []byte, code replyCode, bound netip.AddrPort) []byte {
	return appendAddress(append(b, version, byte(code), 0), bound)
}

// maxHeader is the size of the greatest header of a datagram to a client.
const maxHeader = 3 + 1 + 16 + 2

// parseDatagram reads the header of a client's datagram (section 7). The payload
// is a part of b.
func parseDatagram(b []byte) (to address, payload []byte, err error) {
	if len(b) < 3 {
		return to, nil, errors.New("the datagram has no header")
	}
	if b[2] != 0 {
		return to, nil, errors.New("the datagram is a fragment, which is not supported")
	}
	r := reader{b[3:]}
	to, err = readAddress(&r)
	return to, r.rest, err
}

// reader reads from memory and knows what is left.
type reader struct{ rest []byte }

func (r *reader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// appendDatagram appends the header of a datagram to a client, and the payload.
func appendDatagram(b []byte, from netip.AddrPort, payload []byte) []byte {
	return append(appendAddress(append(b, 0, 0, 0), from), payload...)
}
