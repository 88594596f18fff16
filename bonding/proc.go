package bonding

import (
	"fmt"
	"io"
	"strings"
)

// ProcVersion follows "Ethernet Channel Bonding Driver: v" in the text of
// Status.WriteProc. Linux has its kernel's release there.
const ProcVersion = "1.0-bondstack"

// WriteProc writes the status in the layout of Linux's /proc/net/bonding/NAME:
// the same labels, in the same order, shown in the same cases, since tools
// parse them.
func (st *Status) WriteProc(w io.Writer) error {
	var t strings.Builder
	line := func(label string, value any) { fmt.Fprintf(&t, "%s: %v\n", label, value) }
	line("Ethernet Channel Bonding Driver", "v"+ProcVersion)
	t.WriteByte('\n')
	line("Bonding Mode", st.longMode)
	if st.showsHash {
		line("Transmit Hash Policy", fmt.Sprintf("%s (%d)", st.XmitHashPolicy, st.policy))
	}
	if st.showsPrimary {
		line("Primary Slave", st.procPrimary())
		line("Currently Active Slave", orNone(st.ActiveSlave))
	}
	line("MII Status", upDown(st.Carrier))
	line("MII Polling Interval (ms)", st.MIIMonMs)
	line("Up Delay (ms)", st.UpDelayMs)
	line("Down Delay (ms)", st.DownDelayMs)
	line("Peer Notification Delay (ms)", st.PeerNotifMs)
	if st.ARPIntervalMs > 0 {
		line("ARP Polling Interval (ms)", st.ARPIntervalMs)
		line("ARP Missed Max", st.ARPMissedMax)
		procTargets(&t, "ARP IP target/s (n.n.n.n form)", st.ARPIPTargets)
		procTargets(&t, "NS IPv6 target/s (xx::xx form)", st.NSIP6Targets)
	}
	if st.LACP != nil {
		st.LACP.proc(st, &t)
	}
	for i := range st.Slaves {
		t.WriteByte('\n')
		st.Slaves[i].proc(line)
		if st.LACP != nil {
			st.Slaves[i].LACP.proc(&t)
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func procTargets(t *strings.Builder, label string, list []string) {
	t.WriteString(label + ":")
	if len(list) > 0 {
		t.WriteString(" " + strings.Join(list, ", "))
	}
	t.WriteByte('\n')
}

// procPrimary is the primary slave if it is there, as Linux shows it.
func (st *Status) procPrimary() string {
	if !st.primaryHere {
		return "None"
	}
	return fmt.Sprintf("%s (primary_reselect %s)", st.Primary, st.PrimaryReselect)
}

func (s *SlaveStatus) proc(line func(string, any)) {
	line("Slave Interface", s.Name)
	line("MII Status", s.MIIStatus)
	if s.SpeedMbps != nil {
		line("Speed", fmt.Sprintf("%d Mbps", *s.SpeedMbps))
	} else {
		line("Speed", "Unknown")
	}
	duplex := s.Duplex
	if duplex == "unknown" {
		duplex = "Unknown"
	}
	line("Duplex", duplex)
	line("Link Failure Count", s.LinkFailureCount)
	line("Permanent HW addr", s.PermHWAddr)
	line("Slave queue ID", s.QueueID)
}

func orNone(name string) string {
	if name == "" {
		return "None"
	}
	return name
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}
