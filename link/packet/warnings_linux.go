package packet

import (
	"fmt"
	"net"
	"strings"
)

// Warnings returns what an operator should know about the endpoint at this
// moment, a sentence each, or nothing: that the host has addresses on the
// interface and how to keep its stack from answering, that the interface is down,
// that buffers are smaller than asked for or a ring is missing, that the interface's address could not
// be changed, why an interface that came back could not be opened.
func (e *Endpoint) Warnings() []string {
	var warnings []string
	if !e.options.Exclusive {
		warnings = append(warnings, e.addressWarnings()...)
	}
	if w := e.bufferWarning(); w != "" {
		warnings = append(warnings, w)
	}
	if w := e.ringWarning(); w != "" {
		warnings = append(warnings, w)
	}
	e.life.Lock()
	failure := e.failure
	e.life.Unlock()
	if failure != nil {
		warnings = append(warnings, fmt.Sprintf("interface %q is there but cannot be opened: %v", e.name, failure))
	} else if w := e.downWarning(); w != "" {
		warnings = append(warnings, w)
	}
	e.hardware.mu.Lock()
	defer e.hardware.mu.Unlock()
	if err := e.hardware.failure; err != nil {
		warnings = append(warnings, err.Error())
	}
	return warnings
}

// addressWarnings warns of the host's addresses on the interface.
func (e *Endpoint) addressWarnings() []string {
	var global, local []string
	// Where the interface is gone it has no addresses.
	e.ns.Do(func() error {
		i, err := net.InterfaceByName(e.name)
		if err != nil {
			return err
		}
		addrs, err := i.Addrs()
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() == nil && ip.IP.IsLinkLocalUnicast() {
				local = append(local, a.String())
			} else {
				global = append(global, a.String())
			}
		}
		return err
	})
	var warnings []string
	if len(global) > 0 {
		warnings = append(warnings, fmt.Sprintf("interface %q has addresses of the host (%s): the host's own stack answers "+
			"frames for them too, with resets and ICMP errors; remove them (ip address flush dev %s) or use the option exclusive",
			e.name, strings.Join(global, ", "), e.name))
	}
	if len(local) > 0 {
		warnings = append(warnings, fmt.Sprintf("interface %q has a link-local address of the host (%s): a stack that makes "+
			"its own from the same hardware address has the same one; turn it off (ip link set dev %s addrgenmode none, "+
			"ip -6 address flush dev %s) or use the option exclusive", e.name, strings.Join(local, ", "), e.name, e.name))
	}
	return warnings
}

// downWarning warns of an interface that is down, which the endpoint leaves so: it
// is the host's.
func (e *Endpoint) downWarning() string {
	down := false
	e.ns.Do(func() error {
		i, err := net.InterfaceByName(e.name)
		down = err == nil && i.Flags&net.FlagUp == 0
		return err
	})
	if !down {
		return ""
	}
	return fmt.Sprintf("interface %q is down: it carries nothing until it is set up (ip link set dev %s up)", e.name, e.name)
}

// bufferWarning warns of socket buffers that the system's limits cut.
func (e *Endpoint) bufferWarning() string {
	info := e.Info()
	// The kernel doubles what it grants.
	if info.Index == 0 || info.ReceiveBuffer/2 >= e.options.ReceiveBuffer && info.SendBuffer/2 >= e.options.SendBuffer {
		return ""
	}
	return fmt.Sprintf("interface %q: the socket buffers are %d bytes to receive and %d to send, not %d and %d: "+
		"raise net.core.rmem_max and net.core.wmem_max, or run with CAP_NET_ADMIN", e.name,
		info.ReceiveBuffer/2, info.SendBuffer/2, e.options.ReceiveBuffer, e.options.SendBuffer)
}

// ringWarning warns of a ring that the kernel would not make.
func (e *Endpoint) ringWarning() string {
	e.socketsMu.RLock()
	defer e.socketsMu.RUnlock()
	for _, s := range e.sockets {
		if s.ringFailure != nil {
			return fmt.Sprintf("interface %q: frames are received by system calls, which costs more: %v", e.name, s.ringFailure)
		}
	}
	return ""
}
