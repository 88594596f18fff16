package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"bondstack/bonding/control"
)

const setHelp = `
Usage: bondstack set NAME=VALUE ... [FLAGS]

Sets options of the bond of a running instance by their Linux names: all of them,
as one change, or none. Beside the bond's options, a slave's are set by
SLAVE.prio=N, SLAVE.weight=N and SLAVE.enabled=yes|no.

Examples:
  bondstack set miimon=50 updelay=200
  bondstack set xmit_hash_policy=layer3+4 --dry-run
  bondstack set primary=eth1 eth1.prio=10 --confirm-within 10s
  bondstack set eth2.enabled=no`

func runSet(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newChanger("set", stdout, stderr)
	rest, code, done := c.parse(setHelp, args, 1, -1, "NAME=VALUE, such as miimon=50")
	if done {
		return code
	}
	var ops []control.Operation
	for _, text := range rest {
		o, err := setOperation(text)
		if err != nil {
			return usageError("set", stderr, err)
		}
		ops = append(ops, o)
	}
	return c.do(ops...)
}

// setOperation reads NAME=VALUE or SLAVE.WHAT=VALUE. A slave's name may have dots,
// an option's has none.
func setOperation(text string) (control.Operation, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return control.Operation{}, fmt.Errorf("%q: the form is NAME=VALUE", text)
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return control.Operation{Op: control.Set, Option: name, Value: value}, nil
	}
	slave, what := name[:i], name[i+1:]
	switch what {
	case "prio":
		return control.Operation{Op: control.Prio, Slave: slave, Value: value}, nil
	case "weight":
		return control.Operation{Op: control.Weight, Slave: slave, Value: value}, nil
	case "enabled":
		switch value {
		case "yes", "1", "on":
			return control.Operation{Op: control.Enable, Slave: slave}, nil
		case "no", "0", "off":
			return control.Operation{Op: control.Disable, Slave: slave}, nil
		}
		return control.Operation{}, fmt.Errorf("%q: allowed are yes and no", text)
	}
	return control.Operation{}, fmt.Errorf("%q: of a slave prio, weight and enabled can be set", text)
}

const addSlaveHelp = `
Usage: bondstack add-slave [KIND:]NAME ... [FLAGS]

Makes interfaces slaves of the bond of a running instance. KIND is as for
bondstack run --slave.

Examples:
  bondstack add-slave eth2
  bondstack add-slave eth2 eth3 --prio 5 --dry-run
  bondstack add-slave fdbased:eth2 --confirm-within 30s`

func runAddSlave(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newChanger("add-slave", stdout, stderr)
	prio := c.fs.Int32("prio", 0, "the new slaves' priority, `N`")
	weight := c.fs.Uint32("weight", 0, "the new slaves' weight, `N` (default their speed in Mbit/s)")
	rest, code, done := c.parse(addSlaveHelp, args, 1, -1, "[KIND:]NAME, such as eth2")
	if done {
		return code
	}
	var ops []control.Operation
	for _, text := range rest {
		kind, name, ok := strings.Cut(text, ":")
		if !ok {
			kind, name = "", text
		} else if err := knownKind(text, kind); err != nil {
			return usageError("add-slave", stderr, err)
		}
		ops = append(ops, control.Operation{Op: control.Add, Kind: kind, Slave: name, Prio: *prio, Weight: *weight})
	}
	return c.do(ops...)
}

// eachSlave is a command whose arguments are slaves.
func eachSlave(name, help, op string, args []string, most int, what string, stdout, stderr io.Writer) int {
	c := newChanger(name, stdout, stderr)
	rest, code, done := c.parse(help, args, 1, most, what)
	if done {
		return code
	}
	return c.do(slaveOperations(op, rest)...)
}

func slaveOperations(op string, slaves []string) []control.Operation {
	var ops []control.Operation
	for _, s := range slaves {
		ops = append(ops, control.Operation{Op: op, Slave: s})
	}
	return ops
}

const delSlaveHelp = `
Usage: bondstack del-slave SLAVE ... [FLAGS]

Takes slaves out of the bond of a running instance. Drain them first to lose no
frame.

Examples:
  bondstack del-slave eth0
  bondstack del-slave eth0 eth1 --dry-run
  bondstack drain eth0 && bondstack del-slave eth0 --confirm-within 30s`

func runDelSlave(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	return eachSlave("del-slave", delSlaveHelp, control.Delete, args, -1, "SLAVE, such as eth0", stdout, stderr)
}

const activateHelp = `
Usage: bondstack activate SLAVE [FLAGS]

Makes a slave the active one of the bond of a running instance, at once, as
active_slave does. It is for modes with an active slave.

Examples:
  bondstack activate eth1
  bondstack activate eth1 --dry-run
  bondstack activate eth1 --confirm-within 10s`

func runActivate(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	return eachSlave("activate", activateHelp, control.Activate, args, 1, "one SLAVE, such as eth1", stdout, stderr)
}

const drainHelp = `
Usage: bondstack drain SLAVE ... [--undo] [FLAGS]

Takes slaves of a running instance out of use without losing a frame, so that
their cables can be pulled; with --undo they are used again.

Examples:
  bondstack drain eth0
  bondstack drain eth0 --dry-run
  bondstack drain eth0 --undo`

func runDrain(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newChanger("drain", stdout, stderr)
	undo := c.fs.Bool("undo", false, "use drained slaves again")
	rest, code, done := c.parse(drainHelp, args, 1, -1, "SLAVE, such as eth0")
	if done {
		return code
	}
	op := control.Drain
	if *undo {
		op = control.Undrain
	}
	return c.do(slaveOperations(op, rest)...)
}

const modeHelp = `
Usage: bondstack mode MODE [FLAGS]

Changes the mode of the bond of a running instance, by name or number. Slaves,
addresses and connections stay; frames that are sent in the few milliseconds of the
change are lost, and TCP sends them again.

Examples:
  bondstack mode balance-xor
  bondstack mode 802.3ad --confirm-within 30s
  bondstack mode active-backup --dry-run`

func runMode(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newChanger("mode", stdout, stderr)
	rest, code, done := c.parse(modeHelp, args, 1, 1, "one MODE, such as balance-xor")
	if done {
		return code
	}
	return c.do(control.Operation{Op: control.Set, Option: "mode", Value: rest[0]})
}

const renameHelp = `
Usage: bondstack rename SLAVE NEW-NAME [FLAGS]

Renames a slave of a running instance. The host's interface keeps its name.

Examples:
  bondstack rename eth0 wan0
  bondstack rename eth0 wan0 --dry-run`

func runRename(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newChanger("rename", stdout, stderr)
	rest, code, done := c.parse(renameHelp, args, 2, 2, "SLAVE NEW-NAME, such as eth0 wan0")
	if done {
		return code
	}
	return c.do(control.Operation{Op: control.Rename, Slave: rest[0], To: rest[1]})
}

const confirmHelp = `
Usage: bondstack confirm [ID] [--revert] [--control SOCKET]

Makes a change stay that was made with --confirm-within; with --revert it is taken
back at once. ID is what that command printed; without it, whichever waits.

Examples:
  bondstack confirm
  bondstack confirm 3
  bondstack confirm --revert`

func runConfirm(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("confirm")
	revert := fs.Bool("revert", false, "take the change back")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	if code, done := parseMixed(fs, confirmHelp, args, stdout, stderr); done {
		return code
	}
	if fs.NArg() > 1 {
		return usageError("confirm", stderr, fmt.Errorf("%s given; at most one ID is needed", arguments(fs.NArg())))
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	client := control.NewClient(*socket)
	do, did := client.Confirm, "confirmed\n"
	if *revert {
		do, did = client.Revert, "taken back\n"
	}
	if err := do(ctx, fs.Arg(0)); err != nil {
		return failure("confirm", stderr, explainAsk(*socket, err))
	}
	io.WriteString(stdout, did)
	return exitOK
}
