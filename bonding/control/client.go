package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Client asks a Server. Its methods may be called from any goroutine.
type Client struct {
	http http.Client
}

// maxAnswer bounds an answer that a client reads.
const maxAnswer = 16 << 20

// NewClient makes a client of the server on a unix socket. It connects for each
// request anew, so it needs no Close.
func NewClient(socket string) *Client {
	return &Client{http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// Error is what a server answered instead of a success.
type Error struct {
	Status int    // of HTTP: 400 malformed or no such option, 403 other user, 404 nothing waits, 409 a change waits, 413 too large, 422 refused
	Text   string // every fault, a line each
}

// Error returns the server's text.
func (e *Error) Error() string { return e.Text }

// Change makes, or tries, several operations as one.
func (c *Client) Change(ctx context.Context, r Request) (Answer, error) {
	var a Answer
	err := c.do(ctx, "POST", "/v1/change", r, &a)
	return a, err
}

// Confirm makes a change stay. An empty id is whichever waits.
func (c *Client) Confirm(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/confirm", identified{id}, &struct{}{})
}

// Revert takes a change back before its time. An empty id is whichever waits.
func (c *Client) Revert(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/revert", identified{id}, &struct{}{})
}

// Pending returns what waits to be confirmed; nil where nothing does.
func (c *Client) Pending(ctx context.Context) (*Pending, error) {
	var p *Pending
	err := c.do(ctx, "GET", "/v1/pending", nil, &p)
	return p, err
}

// Watch calls f for each event from now on, until f returns an error, the
// context ends or the bond does. It calls ready, if not nil, once no later event
// can be missed unseen. The error is f's or the context's, nil at the bond's end.
func (c *Client) Watch(ctx context.Context, ready func(), f func(Event) error) error {
	resp, err := c.send(ctx, "GET", "/v1/events", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if ready != nil {
		ready()
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("an event is not understood: %w", err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer)
}

// send returns a successful answer.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://bondstack"+path, content)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	var f failure
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if json.Unmarshal(text, &f) != nil || f.Error == "" {
		f.Error = path + ": " + resp.Status
	}
	return nil, &Error{resp.StatusCode, f.Error}
}
