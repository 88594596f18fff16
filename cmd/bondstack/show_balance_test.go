package main

import (
	"testing"

	"bondstack/bonding"
)

// What is shown of the adaptive modes, and nothing of others.
func TestBalanceText(t *testing.T) {
	st := bonding.Status{XmitHashPolicy: "layer2", Slaves: []bonding.SlaveStatus{
		{Name: "eth0", Balance: &bonding.SlaveBalance{SourceAddress: "02:00:00:00:00:01", Entries: 7, LoadBytesPerSecond: 1250000, Clients: 3}},
	}}
	for _, tt := range []struct {
		balance *bonding.BalanceStatus
		want    string
	}{
		{nil, ""},
		{&bonding.BalanceStatus{Dynamic: true, Rebalances: 3, NextMs: 4200},
			"\nflows are placed by load; 3 rebalances, the next in 4.2s\n  eth0 sends from 02:00:00:00:00:01: 7 of 256 entries, 10.00 Mbit/s\n"},
		{&bonding.BalanceStatus{}, "\nflows are placed by hash, layer2\n  eth0 sends from 02:00:00:00:00:01: 7 of 256 entries, 10.00 Mbit/s\n"},
		{&bonding.BalanceStatus{Clients: &bonding.ClientsStatus{Count: 3, Max: 1024, Refused: 9}},
			"\nflows are placed by hash, layer2\n  eth0 sends from 02:00:00:00:00:01: 7 of 256 entries, 10.00 Mbit/s; 3 clients send to it\n  3 of at most 1024 clients; 9 found no room\n"},
	} {
		st.Balance = tt.balance
		if got := balanceText(&st); got != tt.want {
			t.Errorf("balanceText() = %q, want %q", got, tt.want)
		}
	}
}
