package iperf3

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxParams is the length of the longest parameters, in bytes.
const maxParams = 64 << 10

// maxResults is the length of the longest results of a test with so many streams.
// A peer may add its whole output to them, which is not read.
func maxResults(streams int) int { return 64<<10 + 1024*streams }

// writeMessage sends a value as JSON with its length before it.
func writeMessage(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	_, err = w.Write(append(b, text...))
	return err
}

// readMessage receives what writeMessage sends, if it has at most so many bytes.
// No more memory is taken than has come.
func readMessage(r io.Reader, most int, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > uint32(most) {
		return fmt.Errorf("message has %d bytes, allowed are %d", n, most)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return err
	}
	return json.Unmarshal(text.Bytes(), v)
}

// number is a JSON number as iperf3 writes them: whole numbers may come as
// floating point (1.8446744073709552e+19 for -1), truth as 0 and 1.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null", "false":
		*n = 0
	case "true":
		*n = 1
	default:
		return json.Unmarshal(b, (*float64)(n))
	}
	return nil
}

// whole returns the number as a whole one from 0 to most; beyond, ok is false.
func (n number) whole(most uint64) (v uint64, ok bool) {
	if !(n >= 0 && n < 1<<63) {
		return 0, false
	}
	v = uint64(n)
	return v, v <= most
}

// truth is a JSON boolean, or a number that is zero or not.
type truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *truth) UnmarshalJSON(b []byte) error {
	var n number
	err := n.UnmarshalJSON(b)
	*t = n != 0
	return err
}
