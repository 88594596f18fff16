package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Slaves of kind user get names in the order of the command line, and their
// network's settings once.
func TestUserSlaves(t *testing.T) {
	for _, c := range []struct {
		slaves []string
		want   string // the names, or a part of the error
		ok     bool
	}{
		{[]string{"user:", "user:"}, "[user:user0 user:user1]", true},
		{[]string{"user:,loopback=on,mtu=9000", "user:wifi", "user:"}, "[user:user0 user:wifi user:user1]", true},
		{[]string{"user:user1", "user:", "user:"}, "[user:user1 user:user0 user:user2]", true},
		{[]string{"user:", "user:user0"}, "user0 is given twice", false},
		{[]string{"user:,loopback=on", "user:b,loopback=on"}, "user0 has", false},
		{[]string{"user:,loopback=maybe"}, "on and off", false},
		{[]string{"user:a-very-long-name"}, "15", false},
	} {
		var args []string
		for _, s := range c.slaves {
			args = append(args, "--slave", s)
		}
		var out bytes.Buffer
		s, _, done := parseRun(append(args, "--mode", "active-backup", "--address", "10.0.2.15/24"), &out, &out)
		got := out.String()
		if !done {
			got = fmt.Sprint(s.slaves)
		}
		if done == c.ok || c.ok && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q gives %s, want %s", c.slaves, got, c.want)
		}
	}
}
