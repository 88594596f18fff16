//go:build !linux

package netnstest

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// Namespace is a network namespace of Linux. There is none on this system.
type Namespace struct{}

// New skips the test.
func New(t testing.TB) *Namespace {
	t.Helper()
	t.Skip("needs root on Linux: makes a network namespace")
	return nil
}

// Veth is never reached: New skips.
func Veth(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string) {}

// VethQueues is never reached: New skips.
func VethQueues(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string, queues int) {
}

// File is never reached: New skips.
func (*Namespace) File() *os.File { return nil }

// Do is never reached: New skips.
func (*Namespace) Do(f func()) {}

// Start is never reached: New skips.
func (*Namespace) Start(cmd *exec.Cmd) {}

// TryRun is never reached: New skips.
func (*Namespace) TryRun(name string, args ...string) (string, error) { return "", nil }

// Run is never reached: New skips.
func (*Namespace) Run(name string, args ...string) string { return "" }

// Ping is never reached: New skips.
func (*Namespace) Ping(address string, n int) error { return nil }

// Sysctl is never reached: New skips.
func (*Namespace) Sysctl(name, value string) {}

// Bridge is never reached: New skips.
func (*Namespace) Bridge(name string, members ...string) {}

// Up is never reached: New skips.
func (*Namespace) Up(name string) {}

// Down is never reached: New skips.
func (*Namespace) Down(name string) {}

// Delete is never reached: New skips.
func (*Namespace) Delete(name string) {}

// Rename is never reached: New skips.
func (*Namespace) Rename(name, to string) {}

// SetMTU is never reached: New skips.
func (*Namespace) SetMTU(name string, mtu int) {}

// AddAddress is never reached: New skips.
func (*Namespace) AddAddress(name, cidr string) {}

// HardwareAddress is never reached: New skips.
func (*Namespace) HardwareAddress(name string) net.HardwareAddr { return nil }
