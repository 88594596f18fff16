//go:build !linux

package tap

import (
	"fmt"
	"runtime"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Endpoint is a link to a TAP device of Linux. There is none on this system: New
// returns an error.
type Endpoint struct{ stack.LinkEndpoint }

// New returns an error that has ErrNotSupported in its chain.
func New(name string, _ Options) (*Endpoint, error) {
	return nil, fmt.Errorf("tap: device %q: %w on %s: they need Linux", name, ErrNotSupported, runtime.GOOS)
}
