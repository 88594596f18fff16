package lacp

// Counters are those of the standard's aAggPortStats (IEEE 802.1AX, 7.3.3), in
// Linux's order and meaning, and three of our own.
type Counters struct {
	LACPDURx        uint64 `json:"lacpdu_rx"`
	LACPDUTx        uint64 `json:"lacpdu_tx"`
	UnknownRx       uint64 `json:"lacpdu_unknown_rx"` // another subtype
	IllegalRx       uint64 `json:"lacpdu_illegal_rx"` // too short
	MarkerRx        uint64 `json:"marker_rx"`
	MarkerTx        uint64 `json:"marker_tx"` // always 0: no requests are made
	MarkerRespRx    uint64 `json:"marker_resp_rx"`
	MarkerRespTx    uint64 `json:"marker_resp_tx"`
	MarkerUnknownRx uint64 `json:"marker_unknown_rx"`

	LoopRx        uint64 `json:"lacpdu_loop_rx"`    // of lacpdu_rx: from the own system
	IgnoredRx     uint64 `json:"lacpdu_ignored_rx"` // of lacpdu_rx: link down or half duplex
	MarkerLimited uint64 `json:"marker_limited_rx"` // of marker_rx: not answered, more than three a second
}

func (c *Counters) add(o *Counters) {
	c.LACPDURx += o.LACPDURx
	c.LACPDUTx += o.LACPDUTx
	c.UnknownRx += o.UnknownRx
	c.IllegalRx += o.IllegalRx
	c.MarkerRx += o.MarkerRx
	c.MarkerTx += o.MarkerTx
	c.MarkerRespRx += o.MarkerRespRx
	c.MarkerRespTx += o.MarkerRespTx
	c.MarkerUnknownRx += o.MarkerUnknownRx
	c.LoopRx += o.LoopRx
	c.IgnoredRx += o.IgnoredRx
	c.MarkerLimited += o.MarkerLimited
}
