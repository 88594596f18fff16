package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that are handed on to the command.
var relayed = []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// Relay is a pair of connected sockets by which signals get to the first process
// of the sandbox, a byte each. While the near end is open somewhere, whoever has
// the far one knows that the process that the user started lives.
type Relay struct {
	near, far int // -1 where this process does not have it
}

// errOrphaned: the process that the user started is gone.
var errOrphaned = errors.New("sandbox: the process that was started first is gone")

// NewRelay makes a relay with both ends.
func NewRelay() (*Relay, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: make a pair of sockets: %w", err)
	}
	return &Relay{near: pair[0], far: pair[1]}, nil
}

// AdoptRelay is the relay whose far end this process was started with, as a
// descriptor's number.
func AdoptRelay(far int) *Relay {
	unix.CloseOnExec(far)
	mute()
	return &Relay{near: -1, far: far}
}

// Close closes both ends.
func (r *Relay) Close() {
	r.closeFar()
	if r.near >= 0 {
		unix.Close(r.near)
		r.near = -1
	}
}

func (r *Relay) closeFar() {
	if r.far >= 0 {
		unix.Close(r.far)
		r.far = -1
	}
}

// Forward begins to send the signals that this process gets into the near end,
// until the process ends. One that is ignored, as under nohup, stays so, for the
// command too.
func (r *Relay) Forward() {
	got := make(chan os.Signal, 16)
	catch(got)
	near := r.near
	go func() {
		for s := range got {
			// The socket takes far more than anybody sends; where the far end
			// is closed the command has ended.
			_ = unix.Send(near, []byte{byte(s.(syscall.Signal))}, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		}
	}()
}

// mute has the signals change nothing: the process that was started first hands
// them on.
func mute() { catch(make(chan os.Signal)) }

// catch has the signals that are not ignored come to c.
func catch(c chan<- os.Signal) {
	for _, s := range relayed {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// Watch returns a context that ends when a signal for the command waits in the
// far end, with Interrupted for its cause, or when the near end is closed. stop
// ends watching, and must be called before Run.
func (r *Relay) Watch(parent context.Context) (ctx context.Context, stop func(), err error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: open an eventfd: %w", err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if cause := r.await(wake); cause != nil {
			cancel(cause)
		}
	}()
	return ctx, func() {
		unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-done
		unix.Close(wake)
	}, nil
}

// await waits for the first signal and leaves it in the socket; nil when wake is
// written.
func (r *Relay) await(wake int) error {
	set := []unix.PollFd{{Fd: int32(r.far), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(set, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || set[1].Revents != 0:
			return nil
		}
		var b [1]byte
		n, _, err := unix.Recvfrom(r.far, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case n == 1:
			return Interrupted{syscall.Signal(b[0])}
		case err == nil || errors.Is(err, unix.ECONNRESET):
			return errOrphaned
		}
	}
}
