package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/cmd/bondstack/flowspec"
)

// nextHopTime is how long a neighbour has to tell its address.
const nextHopTime = time.Second

// frameAnswer is the answer to a request for an explanation of a flow or frame.
type frameAnswer struct {
	bonding.FrameExplanation
	// Note is what the answer rests on besides.
	Note string `json:"note,omitempty"`
}

// answer writes a value, or an error, as JSON.
func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		v = map[string]string{"error": err.Error()}
	}
	json.NewEncoder(w).Encode(v)
}

// explainRequests registers what is explained.
func (r *runState) explainRequests(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/explain/lacp", func(w http.ResponseWriter, _ *http.Request) {
		e, err := r.bond.ExplainLACP()
		answer(w, e, err)
	})
	mux.HandleFunc("GET /v1/explain/bond", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, r.bond.Explain(), nil)
	})
	mux.HandleFunc("GET /v1/explain/frame", func(w http.ResponseWriter, req *http.Request) {
		e, err := r.explainFrame(req)
		answer(w, e, err)
	})
}

// question is the flow or frame of which an explanation is wanted.
type question struct {
	frame []byte // nil: the flow
	flow  flowspec.Flow
	vlan  uint16
	to    tcpip.LinkAddress // of the flow's next hop; "" is the one that the stack knows
}

// parseQuestion reads the fields of a request.
func parseQuestion(q url.Values) (f question, err error) {
	if text := q.Get("frame"); text != "" {
		if f.frame, err = hex.DecodeString(text); err != nil {
			return f, fmt.Errorf("frame %.40q: %w", text, err)
		}
		return f, nil
	}
	if f.flow, err = flowspec.Parse(q.Get("flow")); err != nil {
		return f, err
	}
	vlan, err := strconv.Atoi(q.Get("vlan"))
	if err != nil || vlan < 0 || vlan > 4094 {
		return f, fmt.Errorf("VLAN %q: allowed are 1 to 4094, or 0 for none", q.Get("vlan"))
	}
	f.vlan = uint16(vlan)
	if text := q.Get("to_mac"); text != "" {
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 {
			return f, fmt.Errorf("MAC %q: six bytes in hex are allowed, such as 02:00:00:00:00:01", text)
		}
		f.to = tcpip.LinkAddress(mac)
	}
	return f, nil
}

func (r *runState) explainFrame(req *http.Request) (frameAnswer, error) {
	f, err := parseQuestion(req.URL.Query())
	if err != nil {
		return frameAnswer{}, err
	}
	if f.frame != nil {
		return frameAnswer{FrameExplanation: r.bond.ExplainFrame(f.frame)}, nil
	}
	to, note := f.to, ""
	if to == "" {
		to, note = r.destination(req.Context(), f.flow)
	}
	return frameAnswer{r.bond.ExplainFrame(f.flow.Frame(r.bond.LinkAddress(), to, f.vlan)), note}, nil
}

// destination returns the MAC address that a flow is sent to, and a note where that is
// not known but matters.
func (r *runState) destination(ctx context.Context, flow flowspec.Flow) (mac tcpip.LinkAddress, note string) {
	unknown := fmt.Errorf("the instance has no stack of its own that would know")
	if r.host != nil {
		ctx, cancel := context.WithTimeout(ctx, nextHopTime)
		defer cancel()
		if mac, unknown = r.host.NextHop(ctx, flow.To.Addr()); unknown == nil {
			return mac, ""
		}
	}
	mac = "\x00\x00\x00\x00\x00\x00"
	if r.hashesMACs() {
		note = fmt.Sprintf("the next hop's MAC is not known (%v) and counts as %s: give it by --to-mac", unknown, mac)
	}
	return mac, note
}

// hashesMACs reports whether the choice of a slave depends on the next hop's MAC.
func (r *runState) hashesMACs() bool {
	text, _ := r.bond.Option("xmit_hash_policy") // "layer2 0"
	name, _, _ := strings.Cut(text, " ")
	p, err := xmithash.ParsePolicy(name)
	switch r.bond.Mode() {
	case bonding.BalanceXOR, bonding.IEEE8023AD, bonding.BalanceTLB, bonding.BalanceALB:
		return err != nil || p == xmithash.Layer2 || p == xmithash.Layer23 || p == xmithash.Encap23
	}
	return false
}
