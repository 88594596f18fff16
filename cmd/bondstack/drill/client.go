package drill

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

// maxLine bounds a line that the client reads.
const maxLine = 4 << 20

// Ask has the server at a control socket run a drill, and returns its result. tell, if
// not nil, is called for each phase. When the context ends, so does the drill.
func Ask(ctx context.Context, socket string, r Request, tell func(Line)) (*Result, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://bondstack/v1/drill", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("a line of the drill is not understood: %w", err)
		}
		switch {
		case l.Phase == Finished && l.Result != nil:
			return l.Result, nil
		case l.Phase == Failed:
			return nil, errors.New(l.Error)
		case tell != nil:
			tell(l)
		}
	}
	return nil, errors.Join(errors.New("the drill ended without a result: the instance has stopped, or gave the slave back early"), ctx.Err(), lines.Err())
}

// refusal is the error of an answer that is no success.
func refusal(resp *http.Response) error {
	var f struct {
		Error string `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRequest))
	if json.Unmarshal(text, &f) != nil || f.Error == "" {
		f.Error = "/v1/drill: " + resp.Status
	}
	return errors.New(f.Error)
}
