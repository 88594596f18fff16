package sandbox

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The error tells why there is no user namespace, and the way out.
func TestExplainUserNamespace(t *testing.T) {
	for _, c := range []struct {
		err      error
		settings map[string]string
		want     string
	}{
		{unix.EPERM, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1, or run bondstack as root"},
		{unix.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces=10000"},
		{unix.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "7"}, "as many as the kernel allows"},
		{unix.EPERM, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, `give bondstack a profile with "userns,"`},
		{unix.EINVAL, nil, "CONFIG_USER_NS"},
		{unix.EPERM, nil, "seccomp"},
	} {
		err := explainUserNamespace(c.err, func(path string) string { return c.settings[path] })
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "run bondstack as root") {
			t.Errorf("%v with %v: %q, want %q in it", c.err, c.settings, err, c.want)
		}
	}
}

// Where the kernel allows no further namespaces the error names the settings; any
// other error stays as it is.
func TestExplainNamespaces(t *testing.T) {
	err := explainNamespaces(unix.ENOSPC, "pid", "mnt")
	if want := "sysctl -w user.max_pid_namespaces and user.max_mnt_namespaces"; !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), want) {
		t.Errorf("%q, want %q in it", err, want)
	}
	if err := explainNamespaces(unix.EPERM, "net"); err != error(unix.EPERM) {
		t.Errorf("%q, want it as it was", err)
	}
}
