// Command bondstack runs a TCP/IP stack on a bond of several links, in user
// space, and answers questions about such bonds. Each sub-command has a file of
// its own:
//
//	bondstack hash --policy layer3+4 --slaves 2 --frame HEX
//
// bondstack --help lists them, and bondstack COMMAND --help tells what one does,
// with examples. The exit code is 0 for success, 1 for a failure and 2 for wrong
// usage. What was asked for goes to the standard output, all else to the
// standard error.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"bondstack/cmd/bondstack/sandbox"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// A command is a sub-command.
type command struct {
	name  string
	short string // what it does, in some words
	// run gets the arguments behind the command's name and returns an exit
	// code.
	run func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

// commands is in the order in which the help lists them.
var commands = []command{
	{"activate", "make a slave of a running instance the active one", runActivate},
	{"add-slave", "add slaves to a running instance", runAddSlave},
	{"bench", "measure TCP on a bond beside a bare link, in memory", runBench},
	{"capture", "capture frames of a running instance as pcapng", runCapture},
	{"check", "find every fault of configuration files", runCheck},
	{"confirm", "make a change stay that was made with --confirm-within", runConfirm},
	{"del-slave", "take slaves out of a running instance", runDelSlave},
	{"devices", "measure the table of named devices beside gVisor's and the kernel's", runDevices},
	{"drain", "take slaves of a running instance out of use without loss", runDrain},
	{"drill", "run a failover of a running instance on purpose, and measure the outage", runDrill},
	{"exec", "run a command in a network namespace that has only a bond", runExec},
	{"explain", "tell in words which slave sends a flow, and why each is or is not in use", runExplain},
	{"export", "print the ip commands by which Linux makes the same bond", runExport},
	{"hash", "tell which slave a bond would send a frame by", runHash},
	{"import", "make a configuration file of what netplan, networkd, ifcfg, ifupdown, teamd, nmstate or ip have", runImport},
	{"iperf3", "measure a bond by iperf3's protocol, as client or server", runIperf3},
	{"mode", "change the mode of a running instance", runMode},
	{"rename", "rename a slave of a running instance", runRename},
	{"run", "host a TCP/IP stack on a bond of kernel interfaces", runRun},
	{"schema", "print the JSON schema of the configuration file", runSchema},
	{"set", "set options of a running instance", runSet},
	{"show", "show the bond of a running instance", runShow},
	{"tap", "make a network device of the kernel that is a bond of interfaces", runTap},
	{"top", "show the bond of a running instance live: rates, links, failovers", runTop},
	{"version", "tell the version of this program", runVersion},
	{"watch", "print the events of a running instance as they come", runWatch},
}

func main() {
	sandbox.Hook()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program: args are the arguments without the program's name, the
// result is its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, helpText())
		return exitUsage
	}
	switch args[0] {
	case "-h", "--help", "help":
		if len(args) == 1 {
			fmt.Fprint(stdout, helpText())
			return exitOK
		}
		args = []string{args[1], "--help"} // help COMMAND
	case "--version":
		args = []string{"version"}
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:], stdin, stdout, stderr)
		}
	}
	what := "command"
	if strings.HasPrefix(args[0], "-") {
		what = "flag"
	}
	fmt.Fprintf(stderr, "bondstack: unknown %s %q%s, allowed are the commands %s, and --help, --version\n",
		what, args[0], didYouMean("", args[0], commandNames()), strings.Join(commandNames(), ", "))
	return exitUsage
}

func commandNames() []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}
