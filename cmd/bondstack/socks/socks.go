// Package socks is a SOCKS5 proxy (RFC 1928) into a bonded stack: programs of the
// host reach by it what the stack reaches.
//
//	l, err := socks.Listen("127.0.0.1:1080")
//	socks.Serve(l, socks.Options{Relay: r, Stack: host})
//
// It knows CONNECT and UDP ASSOCIATE; BIND is answered with "command not
// supported". Clients need no password, or one of RFC 1929. Names are resolved on
// the stack, where Options.Resolve is set, else refused.
//
// # Limits
//
// Connections and datagrams have the limits and idle times of package link/relay;
// connections count there from the first byte of the handshake on. That has 10 s;
// the destination has as long as the relay gives it. Datagrams in fragments are
// dropped and counted. Anybody may answer a client's datagrams, as is usual with
// a socket of UDP. Passwords cross the network in the clear, as RFC 1929 has it.
package socks

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"bondstack/link/relay"
)

// handshakeTimeout is how long a client may take to say what it wants.
const handshakeTimeout = 10 * time.Second

// replyTimeout is how long a client may take to accept an answer.
const replyTimeout = 5 * time.Second

// Stack is where connections lead, a *stack.Host.
type Stack interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	ListenPacket(network, address string) (net.PacketConn, error)
}

// Options say what a proxy is like. Relay and Stack must be set.
type Options struct {
	// Relay carries what passes, and ends the proxy when it is closed.
	Relay *relay.Relay
	// Stack is where connections lead.
	Stack Stack
	// Resolve returns the addresses of a name, best first. The network is
	// "ip". Nil is that names are refused.
	Resolve func(ctx context.Context, network, name string) ([]netip.Addr, error)
	// Users are names and passwords. None is that no password is needed.
	Users map[string]string
	// Logger is told of clients that are refused. Nil is none.
	Logger *slog.Logger
}

// Server is a proxy.
type Server struct {
	opts   Options
	flows  *relay.Associations[*association]
	denied atomic.Uint64
	bad    atomic.Uint64
}

// Stats counts what the relay of a server does not.
type Stats struct {
	// Denied counts clients without the right password.
	Denied uint64 `json:"denied"`
	// Malformed counts connections that did not speak SOCKS5, and datagrams
	// with a header that is wrong, in fragments, or by others than the client.
	Malformed uint64 `json:"malformed"`
}

// Serve serves a listener's clients until the relay is closed, which closes the
// listener.
func Serve(l net.Listener, opts Options) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts}
	s.flows = relay.NewAssociations(opts.Relay, s.openFlow, replyFlow)
	opts.Relay.Accept(l, s.handle)
	return s
}

// Stats returns the counters.
func (s *Server) Stats() Stats { return Stats{Denied: s.denied.Load(), Malformed: s.bad.Load()} }

// Address completes the address of a proxy, [HOST:]PORT: without a host it is
// 127.0.0.1.
func Address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "", text
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q is not [ADDRESS:]PORT", text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// ReadUsers reads a file of lines NAME:PASSWORD. Empty lines and those that begin
// with # mean nothing.
func ReadUsers(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	users := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if err := AddUser(users, line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s: there is no NAME:PASSWORD in it", path)
	}
	return users, nil
}

// AddUser adds NAME:PASSWORD, each of 1 to 255 bytes. The error does not show the
// text.
func AddUser(users map[string]string, text string) error {
	name, password, ok := strings.Cut(text, ":")
	if !ok || name == "" || password == "" || len(name) > 255 || len(password) > 255 {
		return errors.New("the form is NAME:PASSWORD, each of 1 to 255 bytes")
	}
	users[name] = password
	return nil
}

// handle serves one client.
func (s *Server) handle(client net.Conn) {
	err := s.opts.Relay.Connection(func(ctx context.Context) (near, far net.Conn, err error) {
		far, err = s.open(ctx, client)
		return client, far, err
	})
	switch {
	case errors.Is(err, relay.ErrLimit):
		relay.Abort(client)
	case err != nil:
		client.Close() // it has its answer
		s.opts.Logger.Debug("socks", "client", client.RemoteAddr(), "error", err)
	}
}

// open does the handshake and opens what the client wants.
func (s *Server) open(ctx context.Context, client net.Conn) (net.Conn, error) {
	client.SetDeadline(time.Now().Add(handshakeTimeout))
	stop := context.AfterFunc(ctx, func() { client.SetDeadline(time.Unix(1, 0)) })
	command, to, err := s.handshake(client)
	stop()
	if errors.Is(err, errType) {
		s.reply(client, typeNotSupported, nil)
	}
	if err != nil {
		return nil, err
	}
	var far net.Conn
	switch command {
	case commandConnect:
		far, err = s.connect(ctx, to)
	case commandAssociate:
		far, err = s.associate(client, to)
	default:
		s.reply(client, commandNotSupported, nil)
		return nil, fmt.Errorf("command %d is not supported", command)
	}
	if err != nil {
		s.opts.Logger.Info("socks: not reached", "client", client.RemoteAddr(), "to", to.String(), "error", err)
		s.reply(client, codeOf(err), nil)
		return nil, err
	}
	if err := s.reply(client, succeeded, far.LocalAddr()); err != nil {
		relay.Abort(far)
		return nil, err
	}
	return far, client.SetDeadline(time.Time{})
}

// handshake reads what the client wants, once it may.
func (s *Server) handshake(client net.Conn) (command byte, to address, err error) {
	method := byte(methodNone)
	if len(s.opts.Users) > 0 {
		method = methodPassword
	}
	offered, err := readMethods(client, method)
	if err != nil {
		s.bad.Add(1)
		return 0, to, err
	}
	if !offered {
		s.denied.Add(1)
		client.Write([]byte{version, methodNoneFits})
		return 0, to, errors.New("the client offers no method that fits")
	}
	if _, err := client.Write([]byte{version, method}); err != nil {
		return 0, to, err
	}
	if method == methodPassword {
		if err := s.authenticate(client); err != nil {
			return 0, to, err
		}
	}
	if command, to, err = readRequest(client); err != nil {
		s.bad.Add(1)
	}
	return command, to, err
}

func (s *Server) authenticate(client net.Conn) error {
	user, password, err := readPassword(client)
	if err != nil {
		s.bad.Add(1)
		return err
	}
	// The digests have one length, so the time tells nothing.
	want, known := s.opts.Users[user]
	a, b := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || !known {
		s.denied.Add(1)
		s.opts.Logger.Warn("socks: wrong name or password", "client", client.RemoteAddr())
		client.Write([]byte{authVersion, 1})
		return errors.New("wrong name or password")
	}
	_, err = client.Write([]byte{authVersion, 0})
	return err
}

// reply answers a request.
func (s *Server) reply(client net.Conn, code replyCode, bound net.Addr) error {
	client.SetDeadline(time.Now().Add(replyTimeout))
	var at netip.AddrPort
	switch a := bound.(type) {
	case *net.TCPAddr:
		at = a.AddrPort()
	case *net.UDPAddr:
		at = a.AddrPort()
	}
	_, err := client.Write(appendReply(nil, code, at))
	return err
}

// errNoResolver says that names cannot be resolved.
var errNoResolver = errors.New("names are not resolved: the stack has no name server; give an address")

// resolve returns the addresses of a destination.
func (s *Server) resolve(ctx context.Context, to address) ([]netip.Addr, error) {
	if to.name == "" {
		return []netip.Addr{to.ip}, nil
	}
	if s.opts.Resolve == nil {
		return nil, errNoResolver
	}
	addrs, err := s.opts.Resolve(ctx, "ip", to.name)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%s has no address: %w", to.name, syscall.EHOSTUNREACH)
	}
	return addrs, err
}

// connect connects to the first of a destination's addresses that answers.
func (s *Server) connect(ctx context.Context, to address) (net.Conn, error) {
	addrs, err := s.resolve(ctx, to)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, ip := range addrs {
		c, err := s.opts.Stack.DialContext(ctx, "tcp", netip.AddrPortFrom(ip, to.port).String())
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// codeOf returns the code that tells a client of an error.
func codeOf(err error) replyCode {
	var dns *net.DNSError
	switch {
	case errors.Is(err, errNoResolver):
		return typeNotSupported
	case errors.Is(err, syscall.ECONNREFUSED):
		return connectionRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return networkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns):
		return hostUnreachable
	case errors.Is(err, syscall.EACCES):
		return notAllowed
	}
	return generalFailure
}
