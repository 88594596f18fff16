package stack_test

import (
	"io"
	"testing"

	"bondstack/stack"
)

func TestTCPEcho(t *testing.T) {
	for _, address := range []string{"10.0.0.2:80", "[fd00::2]:80"} {
		t.Run(address, func(t *testing.T) {
			a, b := newPair(t)
			l, err := b.Listen("tcp", ":80")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.Copy(c, c)
				c.Close()
			}()
			c, err := a.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			sent := pattern(3 << 20)
			go func() {
				c.Write(sent)
				c.(*stack.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || string(got) != string(sent) {
				t.Fatalf("echo of %d bytes = %d bytes, %v", len(sent), len(got), err)
			}
			c.Close()
		})
	}
}

// pattern returns bytes that repeat only after 251: no power of two, so that a
// piece at a wrong place shows.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}
