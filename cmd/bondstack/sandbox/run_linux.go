package sandbox

import (
	"encoding/json"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs a command in a network, and returns its exit code when it has ended
// and all processes that it has left are being killed. An error is of what failed
// before this program was started anew; what fails after that is told on the
// standard error, with one of the exit codes for it. The relay is closed.
func Run(relay *Relay, network *Network, c Command) (int, error) {
	settings, err := json.Marshal(initSettings{Resolver: c.Resolver, MustResolve: c.MustResolve, DropRights: c.DropRights})
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	args := func(far string) []string {
		return append([]string{initName, far, string(settings)}, c.Args...)
	}
	code, err := spawn(relay, attr, args, network.enter)
	if err != nil {
		return 0, explainNamespaces(fmt.Errorf("start the sandbox: %w", err), "pid", "mnt")
	}
	return code, nil
}
