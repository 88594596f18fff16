package systemd

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify(Ready); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("there are no datagram sockets of this kind here")
	}
	dir, err := os.MkdirTemp("", "n") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	t.Setenv("NOTIFY_SOCKET", path)
	if Notify(Ready) == nil {
		t.Error("nobody listens, and that is no error")
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Notify(Reloading, "STATUS=reads"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := l.Read(b)
	if got := string(b[:n]); err != nil || got != "RELOADING=1\nSTATUS=reads" {
		t.Errorf("the manager got %q, %v", got, err)
	}
}
