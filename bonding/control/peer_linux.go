package control

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses who is neither the user of this process nor root. The kernel
// recorded who connected. A connection that is no unix socket is its server's
// business.
func checkPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	switch {
	case credErr != nil:
		return fmt.Errorf("who asks is not known: %w", credErr)
	case cred.Uid != 0 && int(cred.Uid) != os.Geteuid():
		return fmt.Errorf("user %d is refused: the bond is user %d's", cred.Uid, os.Geteuid())
	}
	return nil
}
