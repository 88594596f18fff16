// Package netnstest makes network namespaces for tests that need real kernel
// interfaces: veth pairs, bridges, addresses, commands run inside.
//
//	a, b := netnstest.New(t), netnstest.New(t)
//	netnstest.Veth(t, a, "veth0", b, "veth1")
//	b.AddAddress("veth1", "10.9.0.2/24")
//	a.Do(func() { ep, err = packet.New("veth0", packet.Options{}) })
//	out := b.Run("ip", "-s", "link")
//
// A namespace has no name in the file system: it lives as long as the process
// or an open descriptor, so a test that is killed leaves nothing behind. New
// skips the test, with a reason that begins with "needs root", where it cannot
// make one.
//
// Limits: Linux only; on other systems New always skips. Do moves the calling
// goroutine's thread, and nothing else: a goroutine started inside runs outside.
package netnstest
