package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// maxUDP is the longest answer that comes by UDP without EDNS (RFC 1035, section
// 4.2.1); servers that send more are read as well.
const maxUDP = 4096

// errForeign is for what does not answer the question.
var errForeign = errors.New("not an answer to the question")

// errTruncated has the question be asked again by TCP.
var errTruncated = errors.New("answer is truncated")

// query asks one server, by UDP and then where needed by TCP.
func (r *Resolver) query(ctx context.Context, server netip.Addr, name string, t dnsmessage.Type) ([]netip.Addr, string, error) {
	ctx, cancel := context.WithTimeout(ctx, or(r.Timeout, DefaultTimeout))
	defer cancel()
	q, err := newQuestion(name, t)
	if err != nil {
		return nil, "", err
	}
	addrs, alias, err := r.exchange(ctx, "udp", server, q)
	if errors.Is(err, errTruncated) {
		addrs, alias, err = r.exchange(ctx, "tcp", server, q)
	}
	if err == nil || isNotFound(err) {
		return addrs, alias, err
	}
	var timeout net.Error
	return nil, "", &net.DNSError{
		Err:         err.Error(),
		Name:        name,
		Server:      server.String(),
		IsTimeout:   errors.As(err, &timeout) && timeout.Timeout(),
		IsTemporary: true,
		UnwrapErr:   err,
	}
}

// exchange sends a question and awaits its answer.
func (r *Resolver) exchange(ctx context.Context, network string, server netip.Addr, q question) ([]netip.Addr, string, error) {
	c, err := r.Dial(ctx, network, netip.AddrPortFrom(server, 53).String())
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	talk := exchangeDatagram
	if network == "tcp" {
		talk = exchangeStream
	}
	addrs, alias, err := talk(c, q)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = os.ErrDeadlineExceeded // closed for that
	}
	return addrs, alias, err
}

// exchangeDatagram reads until the answer comes: what is not it may be late, or
// from somebody who guesses.
func exchangeDatagram(c net.Conn, q question) ([]netip.Addr, string, error) {
	if _, err := c.Write(q.wire); err != nil {
		return nil, "", err
	}
	buf := make([]byte, maxUDP)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, "", err
		}
		addrs, alias, err := q.parse(buf[:n])
		if !errors.Is(err, errForeign) {
			return addrs, alias, err
		}
	}
}

// exchangeStream has the length before each message (RFC 1035, section 4.2.2).
func exchangeStream(c net.Conn, q question) ([]netip.Addr, string, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(q.wire)))
	if _, err := c.Write(append(framed, q.wire...)); err != nil {
		return nil, "", err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, "", err
	}
	buf := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, buf); err != nil {
		return nil, "", err
	}
	addrs, alias, err := q.parse(buf)
	if errors.Is(err, errTruncated) {
		err = errors.New("answer by TCP is truncated")
	}
	return addrs, alias, err
}

// question is one that was asked.
type question struct {
	id   uint16
	q    dnsmessage.Question
	wire []byte
}

// newQuestion makes a question with an identifier that nobody can guess.
func newQuestion(name string, t dnsmessage.Type) (question, error) {
	n, err := dnsmessage.NewName(name)
	if err != nil {
		return question{}, &net.DNSError{Err: err.Error(), Name: name}
	}
	var id [2]byte
	rand.Read(id[:])
	q := question{id: binary.BigEndian.Uint16(id[:]), q: dnsmessage.Question{Name: n, Type: t, Class: dnsmessage.ClassINET}}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.id, RecursionDesired: true},
		Questions: []dnsmessage.Question{q.q},
	}
	q.wire, err = m.Pack()
	return q, err
}

// parse reads an answer: the addresses of the name, or of the name at the end of
// its aliases, and that name.
func (q question) parse(msg []byte) ([]netip.Addr, string, error) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.ID != q.id || !h.Response {
		return nil, "", errForeign
	}
	asked, err := p.AllQuestions()
	if err != nil || len(asked) != 1 || asked[0].Type != q.q.Type || asked[0].Class != q.q.Class || !sameName(asked[0].Name, q.q.Name) {
		return nil, "", errForeign
	}
	switch {
	case h.RCode == dnsmessage.RCodeNameError:
		return nil, "", notFound(q.q.Name.String(), "no such host")
	case h.RCode != dnsmessage.RCodeSuccess:
		return nil, "", fmt.Errorf("server says %s", strings.TrimPrefix(h.RCode.String(), "RCode"))
	case h.Truncated:
		return nil, "", errTruncated
	}
	answers, err := p.AllAnswers()
	if err != nil {
		return nil, "", fmt.Errorf("answer cannot be read: %w", err)
	}
	addrs, end := q.pick(answers)
	return addrs, end.String(), nil
}

// pick follows the aliases through the answers, which may be in any order, and takes
// the addresses at their end.
func (q question) pick(answers []dnsmessage.Resource) ([]netip.Addr, dnsmessage.Name) {
	name := q.q.Name
	for range maxChain {
		var addrs []netip.Addr
		alias := name
		for _, a := range answers {
			if a.Header.Class != dnsmessage.ClassINET || !sameName(a.Header.Name, name) {
				continue
			}
			switch body := a.Body.(type) {
			case *dnsmessage.AResource:
				addrs = append(addrs, netip.AddrFrom4(body.A))
			case *dnsmessage.AAAAResource:
				addrs = append(addrs, netip.AddrFrom16(body.AAAA))
			case *dnsmessage.CNAMEResource:
				alias = body.CNAME
			}
		}
		if len(addrs) > 0 || sameName(alias, name) {
			return addrs, name
		}
		name = alias
	}
	return nil, name
}

func sameName(a, b dnsmessage.Name) bool { return strings.EqualFold(a.String(), b.String()) }
