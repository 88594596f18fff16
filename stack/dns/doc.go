// Package dns is a stub resolver over any network: it asks recursive servers for
// the addresses of a name (RFC 1035), by UDP, and by TCP where an answer is too long
// for that.
//
//	r := dns.Resolver{Config: func() dns.Config { return config }, Dial: host.DialContext}
//	addrs, err := r.LookupNetIP(ctx, "ip", "example.org")
//
// It keeps nothing: each look-up asks. It reads neither /etc/hosts nor
// /etc/resolv.conf, which are those of another network. DNSSEC is left to the
// servers, EDNS is not used.
package dns
