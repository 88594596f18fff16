package iperf3

import (
	"encoding/binary"
	"fmt"
	"io"
)

// state is a message of the control connection, of one byte. What follows some
// of them is said at each.
type state int8

const (
	testStart       state = 1  // the server has all streams
	testRunning     state = 2  // the server is ready: data may come
	testEnd         state = 4  // the client has ended the test
	paramExchange   state = 9  // the client's parameters are to follow
	createStreams   state = 10 // the client is to connect the streams
	serverTerminate state = 11 // the server was interrupted
	clientTerminate state = 12 // the client was interrupted
	exchangeResults state = 13 // the client's results, then the server's
	displayResults  state = 14 // the server has all results
	iperfDone       state = 16 // the client is done
	accessDenied    state = -1 // the server is busy
	serverError     state = -2 // a fault and an errno follow, 32 bits each
)

var stateNames = map[state]string{
	testStart: "TEST_START", testRunning: "TEST_RUNNING", testEnd: "TEST_END", paramExchange: "PARAM_EXCHANGE",
	createStreams: "CREATE_STREAMS", serverTerminate: "SERVER_TERMINATE", clientTerminate: "CLIENT_TERMINATE",
	exchangeResults: "EXCHANGE_RESULTS", displayResults: "DISPLAY_RESULTS", iperfDone: "IPERF_DONE",
	accessDenied: "ACCESS_DENIED", serverError: "SERVER_ERROR",
}

// String returns the state's name as iperf3's documentation has it.
func (s state) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", int8(s))
}

// fault is the number by which a server says what went wrong.
type fault int32

const (
	faultDuration   fault = 5
	faultStreams    fault = 6
	faultBlockSize  fault = 7
	faultOmit       fault = 12
	faultNotHere    fault = 13
	faultBurst      fault = 15
	faultConditions fault = 16
	faultUDPSize    fault = 20
	faultDirections fault = 25
	faultRate       fault = 27
	faultParams     fault = 114
	faultBusy       fault = 121
	faultListen     fault = 202
	faultAccept     fault = 204
)

var faultTexts = map[fault]string{
	faultDuration: "the test is too long", faultStreams: "too many streams", faultBlockSize: "the block is too large",
	faultOmit: "the time to omit is out of range", faultNotHere: "the server does not have an option", faultBurst: "the burst is too large",
	faultConditions: "there is more than one end", faultUDPSize: "the datagram's size is out of range",
	faultDirections: "reverse and both ways exclude each other", faultRate: "the rate is above the server's limit",
	faultParams: "the parameters cannot be read", faultBusy: "the server is busy with another test",
	faultListen: "the server cannot listen for streams", faultAccept: "the server did not get all streams",
}

// String returns what the fault means; iperf3 has more than those that this
// package sends.
func (f fault) String() string {
	if text, ok := faultTexts[f]; ok {
		return text
	}
	return fmt.Sprintf("fault %d of iperf3", int32(f))
}

// faultError is an error that a server tells its client by number.
type faultError struct {
	fault fault
	text  string
}

func (e *faultError) Error() string { return e.text }

func faultf(f fault, format string, args ...any) error {
	return &faultError{f, fmt.Sprintf(format, args...)}
}

func writeState(w io.Writer, s state) error {
	_, err := w.Write([]byte{byte(s)})
	return err
}

func writeFault(w io.Writer, f fault) error {
	b := []byte{0xfe} // serverError
	b = binary.BigEndian.AppendUint32(b, uint32(f))
	_, err := w.Write(binary.BigEndian.AppendUint32(b, 0))
	return err
}

// readState reads one state. One that says that the server has ended the test is
// an error.
func readState(r io.Reader) (state, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return 0, fmt.Errorf("control connection: %w", err)
	}
	switch s := state(b[0]); s {
	case accessDenied:
		return s, errBusy
	case serverTerminate:
		return s, errServerEnded
	case clientTerminate:
		return s, errClientEnded
	case serverError:
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return s, fmt.Errorf("the server reports a fault, and not which: %w", err)
		}
		return s, fmt.Errorf("the server says: %s (errno %d)", fault(binary.BigEndian.Uint32(b[:4])), binary.BigEndian.Uint32(b[4:]))
	default:
		return s, nil
	}
}

// expectState reads a state that has to be the given one.
func expectState(r io.Reader, want state) error {
	switch got, err := readState(r); {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("control connection: got %s, want %s", got, want)
	}
	return nil
}
