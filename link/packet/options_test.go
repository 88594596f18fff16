package packet

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	for _, o := range []Options{
		{}, {Queues: 1}, {Queues: MaxQueues}, {ReceiveBuffer: MaxBuffer, SendBuffer: 1}, {PollInterval: -1},
	} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: Validate() = %v, want nil", o, err)
		}
	}
	o := Options{Queues: 65, ReceiveBuffer: -1, SendBuffer: MaxBuffer + 1}
	err := o.Validate()
	if err == nil {
		t.Fatalf("%+v: Validate() = nil, want an error", o)
	}
	for _, want := range []string{"queues 65", "1 to 64", "receive buffer -1", "send buffer 1073741824"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %q, want all faults: no %q", err, want)
		}
	}
	if err := (Options{Queues: -1}).Validate(); err == nil {
		t.Error("Validate() of -1 queues = nil, want an error")
	}
}

func TestOptionsDefaults(t *testing.T) {
	got := Options{}.withDefaults()
	want := Options{
		Queues: 1, ReceiveBuffer: DefaultReceiveBuffer, SendBuffer: DefaultSendBuffer, PollInterval: DefaultPollInterval,
	}
	if got != want {
		t.Errorf("withDefaults() = %+v, want %+v", got, want)
	}
	set := Options{Queues: 3, ReceiveBuffer: 1, SendBuffer: 2, PollInterval: -time.Second, Exclusive: true}
	if got := set.withDefaults(); got != set {
		t.Errorf("withDefaults() of %+v = %+v, want it unchanged", set, got)
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	for name, open := range map[string]func() error{
		"New":         func() error { _, err := New("eth9", Options{Queues: -2}); return err },
		"OpenFdbased": func() error { _, err := OpenFdbased("eth9", Options{Queues: -2}); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "eth9") {
			t.Errorf("%s = %v, want an error that names the interface", name, err)
		}
	}
}
