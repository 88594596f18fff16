package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Exit codes that are not the command's own, as shells and env have them. A
// command that a signal ended has 128 and the signal's number.
const (
	// CodeFailure: something failed before the command was started.
	CodeFailure = 125
	// CodeNotExecutable: the command is there and cannot be executed.
	CodeNotExecutable = 126
	// CodeNotFound: there is no such command.
	CodeNotFound = 127
	// codeSignal is added to the number of the signal that ended a command.
	codeSignal = 128
)

// ErrNotSupported: this system has no network namespaces.
var ErrNotSupported = errors.New("sandbox: needs Linux")

// Command is what Run runs.
type Command struct {
	// Args are the command, found by PATH where it has no slash, and its
	// arguments. It has the environment, the folder and the open files of
	// the calling process.
	Args []string
	// Resolver is the text of its /etc/resolv.conf.
	Resolver string
	// MustResolve has it be an error where there is no /etc/resolv.conf to
	// put Resolver in place of.
	MustResolve bool
	// DropRights takes the rights over the user namespace from it that
	// RunInUserNamespace gave to the caller.
	DropRights bool
}

// Resolver returns the text of a resolv.conf with the given servers.
func Resolver(servers []netip.Addr) string {
	if len(servers) == 0 {
		return "# made by bondstack exec, which was given no --dns\n"
	}
	var b strings.Builder
	b.WriteString("# made by bondstack exec\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	return b.String()
}

// Interrupted is the error of what a signal ended before the command was started.
type Interrupted struct{ Signal syscall.Signal }

// Error tells the signal.
func (i Interrupted) Error() string { return fmt.Sprintf("sandbox: interrupted by %s", i.Signal) }

// Code is the exit code that says so.
func (i Interrupted) Code() int { return codeSignal + int(i.Signal) }
