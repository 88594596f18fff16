//go:build !linux

package fd

import (
	"fmt"
	"runtime"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Endpoint is a link on a descriptor of Linux. There is none on this system: New
// returns an error.
type Endpoint struct{ stack.LinkEndpoint }

// Probe returns an error that has ErrNotALink in its chain.
func Probe(fd int) (Kind, error) {
	return 0, fmt.Errorf("fd: descriptor %d on %s: %w: that needs Linux", fd, runtime.GOOS, ErrNotALink)
}

// New returns an error that has ErrNotALink in its chain.
func New(fd int, _ Options) (*Endpoint, error) {
	_, err := Probe(fd)
	return nil, err
}
