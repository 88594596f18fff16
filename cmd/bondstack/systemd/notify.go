// Package systemd tells a service manager how a service is, by the datagrams that
// sd_notify(3) describes: Notify(Ready). Where no manager asks for it, as
// NOTIFY_SOCKET says, nothing is sent.
package systemd

import (
	"net"
	"os"
	"time"
)

// What a service can tell.
const (
	Ready     = "READY=1"     // it runs, or runs again after a reload
	Reloading = "RELOADING=1" // it reads its configuration again
	Stopping  = "STOPPING=1"  // it is about to end
)

// timeout bounds how long a manager may take to receive.
const timeout = time.Second

// Notify sends a state, with lines such as "STATUS=text" behind it. The error says
// why the manager, which is there, could not be told.
func Notify(state string, lines ...string) error {
	path := os.Getenv("NOTIFY_SOCKET") // with @ for the abstract name space, as package net has it
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, line := range lines {
		state += "\n" + line
	}
	c.SetWriteDeadline(time.Now().Add(timeout))
	_, err = c.Write([]byte(state))
	return err
}
