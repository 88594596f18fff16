package iperf3

import (
	"fmt"
	"io"
)

// ending is what the control connection says while a test runs.
type ending struct {
	state state
	err   error
}

// watch reads the next state while the test runs. The test is over when it is the
// last one, or with an error.
func (t *test) watch(ctl io.Reader, last state) <-chan error {
	over := make(chan error, 1)
	t.said = make(chan ending, 1)
	go func() {
		s, err := readState(ctl)
		t.said <- ending{s, err}
		if err != nil || s == last {
			over <- err
		} else if last != 0 {
			over <- fmt.Errorf("control connection: got %s, want %s", s, last)
		}
	}()
	return over
}
