package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"

	"bondstack/cmd/bondstack/forward"
	"bondstack/cmd/bondstack/socks"
	"bondstack/link/relay"
	"bondstack/stack"
)

// socksUserVariable is where the environment gives a proxy's name and password.
const socksUserVariable = "BONDSTACK_SOCKS_USER"

// maxFlows bounds --flow-limit: each flow needs a descriptor of the host's.
const maxFlows = 65536

// relaySettings are those of forwards and of the SOCKS proxy.
type relaySettings struct {
	forwards   []forward.Forward
	socks      string // where the proxy listens, empty for none
	socksUsers map[string]string
	limits     relay.Options
}

// define defines the flags. read reads their values once they are parsed.
func (s *relaySettings) define(fs *pflag.FlagSet) (read func(*faults)) {
	forwards := fs.StringArray("forward", nil, "a forward, `"+forward.Form+"`; may be given again")
	address := fs.String("socks", "", "a SOCKS5 proxy into the stack, at `[ADDRESS:]PORT` of the host (default address 127.0.0.1)")
	users := fs.String("socks-users", "", "a `FILE` of lines NAME:PASSWORD for --socks (or one in $"+socksUserVariable+")")
	limit := fs.Int("flow-limit", relay.DefaultLimit, "at most `N` connections, and as many UDP flows, by --forward and --socks")
	fs.DurationVar(&s.limits.TCPIdle, "tcp-idle", 0, "reset connections of --forward and --socks after a `TIME` without a byte (default never)")
	fs.DurationVar(&s.limits.UDPIdle, "udp-idle", relay.DefaultUDPIdle, "end UDP flows of --forward and --socks after a `TIME` without a datagram")
	return func(f *faults) {
		f.each("--forward", *forwards, s.parseForward)
		f.add("--socks", s.parseSocks(*address, *users))
		if *limit < 1 || *limit > maxFlows {
			f.add("--flow-limit", fmt.Errorf("%d is out of range, allowed are 1 to %d", *limit, maxFlows))
		}
		s.limits.MaxTCP, s.limits.MaxUDP = *limit, *limit
		if s.limits.TCPIdle < 0 {
			f.add("--tcp-idle", fmt.Errorf("%v is negative, allowed are 0 (never) and more", s.limits.TCPIdle))
		}
		if s.limits.UDPIdle < time.Second {
			f.add("--udp-idle", fmt.Errorf("%v is out of range, allowed are 1s and more", s.limits.UDPIdle))
		}
	}
}

func (s *relaySettings) parseForward(text string) error {
	f, err := forward.Parse(text)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	s.forwards = append(s.forwards, f)
	return nil
}

func (s *relaySettings) parseSocks(address, users string) (err error) {
	if address == "" {
		if users != "" {
			return errors.New("missing, and --socks-users is given")
		}
		return nil
	}
	if s.socks, err = socks.Address(address); err != nil {
		return err
	}
	if users != "" {
		s.socksUsers, err = socks.ReadUsers(users)
		return err
	}
	if text := os.Getenv(socksUserVariable); text != "" {
		s.socksUsers = map[string]string{}
		if err := socks.AddUser(s.socksUsers, text); err != nil {
			return fmt.Errorf("$%s: %w", socksUserVariable, err)
		}
	}
	return nil
}

// newRelay makes the relay of all forwards and of the proxy.
func (s *relaySettings) newRelay(log *slog.Logger) *relay.Relay {
	limits := s.limits
	limits.Logger = log
	return relay.New(limits)
}

// relayed is a forward that is to be started.
type relayed struct {
	forward.Forward
	relay *relay.Relay
}

// start is that of a starter.
func (f relayed) start(_ context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error) {
	_, stop, err = f.Start(f.relay, h, log)
	return stop, err
}

// proxy is a SOCKS proxy that is to be started.
type proxy struct {
	*relaySettings
	relay *relay.Relay
}

// start is that of a starter.
func (p proxy) start(_ context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error) {
	l, err := net.Listen("tcp", p.socks)
	if err != nil {
		return nil, err
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && len(p.socksUsers) == 0 {
		log.Warn("anybody who reaches the SOCKS proxy can use the bond: give --socks-users or a loopback address", "address", a)
	}
	socks.Serve(l, socks.Options{Relay: p.relay, Stack: h, Resolve: h.LookupNetIP, Users: p.socksUsers, Logger: log})
	return func() { l.Close() }, nil
}

// forwardedText tells people what a relay of some name has carried, and nothing where
// that is nothing.
func forwardedText(name string, s *relay.Stats) string {
	text := ""
	for _, k := range []struct {
		name string
		relay.Counts
	}{{"connections", s.TCP}, {"UDP flows", s.UDP}} {
		if k.Opened+k.Limited > 0 {
			text += fmt.Sprintf("  %s %s: %d open of %d, %d failed, %d refused, %d timed out, %d reset; %d and %d bytes\n",
				name, k.name, k.Open, k.Opened, k.Failed, k.Limited, k.TimedOut, k.Resets, k.ToFar, k.ToNear)
		}
		if k.Dropped+k.Ended > 0 {
			text += fmt.Sprintf("  %s datagrams lost: %d that could not be passed on, %d whose flow ended\n", name, k.Dropped, k.Ended)
		}
	}
	return text
}
