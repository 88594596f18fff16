package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bondstack/bonding/xmithash"
)

const hashHelp = `
Usage: bondstack hash --policy P --slaves N [--via raw|vlan] [--explain] {--frame HEX | --in FILE}

Prints the slave, counted from 0, by which a bond with xmit_hash_policy P and N
usable slaves sends a frame in the modes balance-xor and 802.3ad, and in
balance-tlb and balance-alb with tlb_dynamic_lb off. P is layer2, layer2+3,
layer3+4, encap2+3, encap3+4 or vlan+srcmac.

A frame is given in hex, from its destination MAC on, without FCS, VLAN tags
included. FILE (- is the standard input) holds one JSON object a line with a
"frame" and, where it differs from --via, a "via"; other keys are ignored. One
number a line comes out. A bad line ends the command, which names it.

Examples:
  bondstack hash --policy layer2 --slaves 2 --frame 0200000000aa0211223344550800
  bondstack hash --policy layer3+4 --slaves 3 --in testdata/xmit-hash.jsonl
  echo '{"frame":"0200000000aa02112233445588cc"}' |
    bondstack hash --policy layer2+3 --slaves 4 --explain --in -`

// maxLine bounds a line of --in, in bytes. A frame has at most 64 KiB and some
// headers.
const maxLine = 1 << 20

// A hasher answers for one frame after the other.
type hasher struct {
	policy  xmithash.Policy
	via     xmithash.Via // of a frame that names none
	slaves  int
	explain bool
}

func runHash(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("hash")
	policy := fs.String("policy", "", "the bond's xmit_hash_policy `P`, by name or by Linux's number")
	slaves := fs.Int("slaves", 0, "`N`, how many usable slaves the bond has, 1 or more")
	via := fs.String("via", "vlan", "`VIA` is vlan, the outer VLAN tag counts as beside the frame, as in the data path, or raw, as inside it")
	frame := fs.String("frame", "", "the frame in `HEX`")
	in := fs.String("in", "", "a `FILE` of frames, - for the standard input")
	explain := fs.Bool("explain", false, "tell each step of the arithmetic, indented, below the number")
	if code, done := parseFlags(fs, hashHelp, args, stdout, stderr); done {
		return code
	}
	h, err := newHasher(*policy, *via, *slaves, *explain)
	if err == nil && fs.Changed("frame") == fs.Changed("in") {
		err = errors.New("give one of --frame and --in")
	}
	if err != nil {
		return usageError("hash", stderr, err)
	}
	out := bufio.NewWriter(stdout)
	if fs.Changed("frame") {
		b, err := decodeFrame(*frame)
		if err != nil {
			return usageError("hash", stderr, fmt.Errorf("--frame: %w", err))
		}
		h.answer(out, b, h.via)
	} else {
		err = h.answerFile(out, *in, stdin)
	}
	// The numbers of the good lines come out before the bad one is named.
	if err := errors.Join(out.Flush(), err); err != nil {
		return failure("hash", stderr, err)
	}
	return exitOK
}

func newHasher(policy, via string, slaves int, explain bool) (*hasher, error) {
	if policy == "" {
		return nil, errors.New("--policy is missing, for instance --policy layer3+4")
	}
	p, err := xmithash.ParsePolicy(policy)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	v, err := xmithash.ParseVia(via)
	if err != nil {
		return nil, fmt.Errorf("--via: %w", err)
	}
	if slaves < 1 {
		return nil, fmt.Errorf("--slaves is %d, it must be given and at least 1", slaves)
	}
	return &hasher{p, v, slaves, explain}, nil
}

// answer prints the choice for one frame. A failed write is found by Flush.
func (h *hasher) answer(out *bufio.Writer, frame []byte, via xmithash.Via) {
	if h.explain {
		e := xmithash.Explain(h.policy, via, frame, h.slaves)
		fmt.Fprintln(out, e.Slave)
		for line := range strings.Lines(e.String()) {
			out.WriteString("  " + line)
		}
		return
	}
	sum, _ := h.policy.Func(via)(frame, len(frame))
	fmt.Fprintln(out, uint64(sum)%uint64(h.slaves))
}

// answerFile answers for each line of a file.
func (h *hasher) answerFile(out *bufio.Writer, path string, stdin io.Reader) error {
	in, name := stdin, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, path
	}
	lines := bufio.NewReaderSize(in, maxLine)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return nil
		case err == bufio.ErrBufferFull:
			return fmt.Errorf("%s, line %d: longer than %d bytes", name, n, maxLine)
		case err != nil && err != io.EOF:
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		frame, via, err := parseLine(line, h.via)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		h.answer(out, frame, via)
		if lines.Buffered() == 0 { // whoever writes the lines may wait for the answer
			out.Flush()
		}
	}
}

// parseLine reads a line of --in. Keys are exact, unlike those of a Go struct,
// which would also take "Frame".
func parseLine(line []byte, via xmithash.Via) ([]byte, xmithash.Via, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		return nil, via, fmt.Errorf("not a JSON object: %w", err)
	}
	var frame, name *string
	if err := json.Unmarshal(orNull(keys["frame"]), &frame); err != nil || frame == nil {
		return nil, via, errors.New(`no "frame" with a string of hex`)
	}
	if err := json.Unmarshal(orNull(keys["via"]), &name); err != nil {
		return nil, via, errors.New(`"via" is no string, allowed are vlan, raw`)
	}
	if name != nil {
		v, err := xmithash.ParseVia(*name)
		if err != nil {
			return nil, via, err
		}
		via = v
	}
	b, err := decodeFrame(*frame)
	return b, via, err
}

func orNull(m json.RawMessage) json.RawMessage {
	if m == nil {
		return json.RawMessage("null")
	}
	return m
}

func decodeFrame(s string) ([]byte, error) {
	if s == "" {
		return nil, errors.New("the frame is empty, it must be an Ethernet frame in hex")
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("the frame is not hex: %w", err)
	}
	return b, nil
}
