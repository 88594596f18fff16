// Package sandbox runs a command in a network namespace of its own, for
// "bondstack exec". The namespace has a loopback interface and whatever devices
// its maker puts there; it has no name, and is gone with the processes in it.
//
//	relay, err := sandbox.NewRelay() // signals from now on are for the command
//	relay.Forward()
//	network, err := sandbox.NewNetwork()
//	// make a device in network.File(), give it addresses
//	code, err := sandbox.Run(relay, network, sandbox.Command{Args: []string{"curl", url}})
//
// # Processes
//
// Run starts this program anew as the first process of a new PID namespace,
// which Hook, called first by main, recognises. That process makes the mounts,
// starts the command, reaps, hands on signals, and ends with the command's exit
// code; the kernel then kills all that the command left running, as it does when
// the caller of Run ends in any way.
//
// Who has no rights on the host calls RunInUserNamespace first, which starts the
// program anew with the rights over a user namespace of its own.
//
// # Signals and the terminal
//
// All processes stay in the process group, the session and on the terminal that
// the caller has, so that what the terminal sends reaches the command by itself.
// A signal that only the caller got is handed on, a fifth of a second later: the
// first process of the sandbox knows by then whether it got one too, as it has
// where the whole group got it.
//
// # Mounts
//
// In the command's mount namespace /etc/resolv.conf is what Command.Resolver
// says, and /proc and /sys are those of its namespaces, where the kernel allows
// to mount them (inside of a container it may not: then they stay the host's).
// All else is the host's: the command is kept from the host's network, and from
// nothing else.
//
// It needs Linux. On other systems everything returns ErrNotSupported.
package sandbox
