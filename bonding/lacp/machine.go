package lacp

import "fmt"

// Machine names a state machine of a port, or something of the System that
// changes and is worth an Event.
type Machine uint8

// The machines of a port, by the names of IEEE 802.1AX, 6.4.
const (
	ReceiveMachine Machine = iota
	PeriodicMachine
	MuxMachine
	SelectionLogic // the variable Selected
	ActorChurn
	PartnerChurn
	machineCount

	// What follows has events, but no states of the standard.

	ActiveAggregator // From and To are ids, 0 is none
	Carrier          // 0 off, 1 on
	Fallback         // a port carries data without a partner: 0 off, 1 on
	Loop             // a port hears its own system: 0 no, 1 yes
	Drain            // From and To are of DrainStage
	Removed          // From is the number of the port that is gone
)

// MachineState is a state of a machine. Which one depends on the machine.
type MachineState uint8

// The states of the receive machine.
const (
	Initialize MachineState = iota
	PortDisabled
	LACPDisabled
	ExpiredState
	DefaultedState
	Current
)

// The states of the periodic transmission machine.
const (
	NoPeriodic MachineState = iota
	FastPeriodic
	SlowPeriodic
	PeriodicTx
)

// The states of the mux machine. CollectingDistributing is of coupled control,
// the last two are of independent control.
const (
	Detached MachineState = iota
	Waiting
	Attached
	CollectingDistributing
	CollectingState
	DistributingState
)

// The values of Selected.
const (
	Unselected MachineState = iota
	Standby
	Selected
)

// The states of both churn machines. Linux's numbers are the same.
const (
	ChurnMonitor MachineState = iota
	Churned
	NoChurn
)

const stateCount = 6 // at most, of any machine

var machineNames = [...]string{
	ReceiveMachine: "receive", PeriodicMachine: "periodic", MuxMachine: "mux", SelectionLogic: "selection",
	ActorChurn: "actor churn", PartnerChurn: "partner churn", ActiveAggregator: "active aggregator",
	Carrier: "carrier", Fallback: "fallback", Loop: "loop", Drain: "drain", Removed: "removed",
}

// String returns the machine's name.
func (m Machine) String() string {
	if int(m) < len(machineNames) && machineNames[m] != "" {
		return machineNames[m]
	}
	return fmt.Sprintf("Machine(%d)", uint8(m))
}

var stateNamesOf = [machineCount][]string{
	ReceiveMachine:  {"INITIALIZE", "PORT_DISABLED", "LACP_DISABLED", "EXPIRED", "DEFAULTED", "CURRENT"},
	PeriodicMachine: {"NO_PERIODIC", "FAST_PERIODIC", "SLOW_PERIODIC", "PERIODIC_TX"},
	MuxMachine:      {"DETACHED", "WAITING", "ATTACHED", "COLLECTING_DISTRIBUTING", "COLLECTING", "DISTRIBUTING"},
	SelectionLogic:  {"UNSELECTED", "STANDBY", "SELECTED"},
	ActorChurn:      {"ACTOR_CHURN_MONITOR", "ACTOR_CHURN", "NO_ACTOR_CHURN"},
	PartnerChurn:    {"PARTNER_CHURN_MONITOR", "PARTNER_CHURN", "NO_PARTNER_CHURN"},
}

// StateName returns the standard's name of a state of the machine.
func (m Machine) StateName(s MachineState) string {
	if m < machineCount && int(s) < len(stateNamesOf[m]) {
		return stateNamesOf[m][s]
	}
	return fmt.Sprintf("%d", uint8(s))
}

// StateNames returns the standard's names of all states of the machine, nil where
// it has none.
func (m Machine) StateNames() []string {
	if m >= machineCount {
		return nil
	}
	return append([]string(nil), stateNamesOf[m]...)
}

// move puts a port's machine into a state, counts the arc, and remembers the
// event. why is a constant text.
func (s *System) move(p *port, m Machine, to MachineState, why string) {
	from := p.state[m]
	p.state[m] = to
	s.arcs[m][from][to]++
	if m != PeriodicMachine && from != to {
		p.events.add(Event{At: s.now, Port: p.id, Machine: m, From: uint16(from), To: uint16(to), Trigger: s.trigger, Why: why})
	}
}
