package lacp

// Arc is a way from one state of a machine to another.
type Arc struct {
	Machine  Machine
	From, To MachineState
	When     string // the condition, in the standard's words where it has them
}

// String returns "mux DETACHED -> WAITING".
func (a Arc) String() string {
	return a.Machine.String() + " " + a.Machine.StateName(a.From) + " -> " + a.Machine.StateName(a.To)
}

// arcs lists every arc that the machines have. BEGIN is a new port, a link
// that comes back, and a change of duplex.
var arcs = []Arc{
	{ReceiveMachine, Initialize, PortDisabled, "UCT"},
	{ReceiveMachine, PortDisabled, Initialize, "BEGIN, port_moved"},
	{ReceiveMachine, PortDisabled, ExpiredState, "port_enabled and LACP_Enabled"},
	{ReceiveMachine, PortDisabled, LACPDisabled, "port_enabled and not LACP_Enabled"},
	{ReceiveMachine, LACPDisabled, PortDisabled, "not port_enabled"},
	{ReceiveMachine, LACPDisabled, Initialize, "BEGIN"},
	{ReceiveMachine, ExpiredState, PortDisabled, "not port_enabled"},
	{ReceiveMachine, ExpiredState, Initialize, "BEGIN"},
	{ReceiveMachine, ExpiredState, DefaultedState, "current_while_timer expired"},
	{ReceiveMachine, ExpiredState, Current, "LACPDU received"},
	{ReceiveMachine, DefaultedState, PortDisabled, "not port_enabled"},
	{ReceiveMachine, DefaultedState, Initialize, "BEGIN"},
	{ReceiveMachine, DefaultedState, Current, "LACPDU received"},
	{ReceiveMachine, Current, PortDisabled, "not port_enabled"},
	{ReceiveMachine, Current, Initialize, "BEGIN"},
	{ReceiveMachine, Current, ExpiredState, "current_while_timer expired"},
	{ReceiveMachine, Current, Current, "LACPDU received"},

	{PeriodicMachine, NoPeriodic, FastPeriodic, "UCT"},
	{PeriodicMachine, FastPeriodic, SlowPeriodic, "partner timeout is long"},
	{PeriodicMachine, FastPeriodic, PeriodicTx, "periodic_timer expired"},
	{PeriodicMachine, FastPeriodic, NoPeriodic, "BEGIN, not enabled, or both passive"},
	{PeriodicMachine, SlowPeriodic, PeriodicTx, "periodic_timer expired, or partner timeout is short"},
	{PeriodicMachine, SlowPeriodic, NoPeriodic, "BEGIN, not enabled, or both passive"},
	{PeriodicMachine, PeriodicTx, FastPeriodic, "partner timeout is short"},
	{PeriodicMachine, PeriodicTx, SlowPeriodic, "partner timeout is long"},

	{MuxMachine, Detached, Waiting, "SELECTED or STANDBY"},
	{MuxMachine, Waiting, Detached, "UNSELECTED"},
	{MuxMachine, Waiting, Attached, "SELECTED and Ready"},
	{MuxMachine, Attached, Detached, "UNSELECTED or STANDBY"},
	{MuxMachine, Attached, CollectingDistributing, "SELECTED and partner in sync (coupled)"},
	{MuxMachine, CollectingDistributing, Attached, "UNSELECTED or STANDBY, or partner not in sync"},
	{MuxMachine, Attached, CollectingState, "SELECTED and partner in sync (independent)"},
	{MuxMachine, CollectingState, Attached, "UNSELECTED or STANDBY, or partner not in sync"},
	{MuxMachine, CollectingState, DistributingState, "partner collecting"},
	{MuxMachine, DistributingState, CollectingState, "UNSELECTED or STANDBY, or partner not in sync or not collecting"},

	{SelectionLogic, Unselected, Standby, "an aggregator is found"},
	{SelectionLogic, Standby, Selected, "the aggregator is active"},
	{SelectionLogic, Selected, Standby, "the aggregator is not active"},
	{SelectionLogic, Standby, Unselected, "partner or key changed, link lost, or loop"},
	{SelectionLogic, Selected, Unselected, "partner or key changed, link lost, or loop"},

	{ActorChurn, ChurnMonitor, NoChurn, "actor in sync"},
	{ActorChurn, ChurnMonitor, Churned, "actor_churn_timer expired"},
	{ActorChurn, NoChurn, ChurnMonitor, "actor not in sync, BEGIN, or not port_enabled"},
	{ActorChurn, Churned, NoChurn, "actor in sync"},
	{ActorChurn, Churned, ChurnMonitor, "BEGIN or not port_enabled"},
	{PartnerChurn, ChurnMonitor, NoChurn, "partner in sync"},
	{PartnerChurn, ChurnMonitor, Churned, "partner_churn_timer expired"},
	{PartnerChurn, NoChurn, ChurnMonitor, "partner not in sync, BEGIN, or not port_enabled"},
	{PartnerChurn, Churned, NoChurn, "partner in sync"},
	{PartnerChurn, Churned, ChurnMonitor, "BEGIN or not port_enabled"},
}

// Arcs returns every arc that the machines have, for reports of what tests or
// a running bond went through.
func Arcs() []Arc { return append([]Arc(nil), arcs...) }

// ArcCount returns how often the System's ports went an arc.
func (s *System) ArcCount(a Arc) uint64 {
	if a.Machine >= machineCount || a.From >= stateCount || a.To >= stateCount {
		return 0
	}
	return s.arcs[a.Machine][a.From][a.To]
}
