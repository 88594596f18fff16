// Package control changes a bond while it runs, over HTTP with JSON on a unix
// socket: a Server for the program that has the bond, a Client for others.
//
//	s := control.NewServer(bond, control.Options{Open: open})
//	defer s.Close()
//	l, err := net.Listen("unix", path)
//	err = os.Chmod(path, 0o600)
//	go s.HTTP(nil).Serve(l)
//
//	c := control.NewClient(path)
//	answer, err := c.Change(ctx, control.Request{Operations: []control.Operation{
//		{Op: control.Set, Option: "miimon", Value: "50"},
//		{Op: control.Drain, Slave: "eth0"},
//	}, ConfirmWithinMs: 10_000})
//	err = c.Confirm(ctx, answer.Confirm.ID)
//
// The operations of one request are one bonding.Transaction: all or none. With
// DryRun they are only tried. With ConfirmWithinMs they are taken back unless
// Confirm comes in time; until then other changes are refused. Requests of
// several clients are made one at a time.
//
// The socket is its owner's: on Linux the kernel says who is at the other end,
// and other users, but root, are refused; elsewhere only the socket's mode keeps
// them out. Requests are bounded in size, in operations and in time.
//
// Limits: the mode is changed by itself or with other options, not with slaves.
// What a transaction changed lives in memory: a program that ends before the
// confirmation begins next time from its own settings.
package control
