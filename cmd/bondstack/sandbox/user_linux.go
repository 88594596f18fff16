package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// needed are the rights that making a sandbox needs.
var needed = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}

// Privileged reports whether this process may make a sandbox by itself. Else
// RunInUserNamespace may.
func Privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.Geteuid() == 0
	}
	for _, c := range needed {
		if data[0].Effective&(1<<c) == 0 {
			return false
		}
	}
	return true
}

// RunInUserNamespace starts this program anew in a user namespace, with rights
// over that, and returns its exit code. args makes its arguments of the number of
// the descriptor for AdoptRelay. The user's own ID is the only one there is in
// the namespace, as root's where asRoot is set.
func RunInUserNamespace(relay *Relay, asRoot bool, args func(far string) []string) (int, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
	}
	if asRoot { // who has the rights because it is root
		attr.UidMappings[0].ContainerID, attr.GidMappings[0].ContainerID = 0, 0
	} else {
		attr.AmbientCaps = needed
	}
	code, err := spawn(relay, attr, args, func() error { return nil })
	if err != nil {
		return 0, explainUserNamespace(err, readSetting)
	}
	return code, nil
}

// readSetting returns a kernel setting, "" where there is none.
func readSetting(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// explainUserNamespace says why there is no user namespace, and what to do.
func explainUserNamespace(err error, setting func(path string) string) error {
	const asRoot = "or run bondstack as root"
	why := fmt.Sprintf("a container may forbid them (its seccomp profile): allow the system call clone with CLONE_NEWUSER there, %s", asRoot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return err // of this program itself
	case setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		why = "the kernel allows them to root only: sysctl -w kernel.unprivileged_userns_clone=1, " + asRoot
	case setting("/proc/sys/user/max_user_namespaces") == "0":
		why = "the kernel allows none: sysctl -w user.max_user_namespaces=10000, " + asRoot
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		why = "there are as many as the kernel allows, or they are nested too deeply: sysctl -w user.max_user_namespaces with a greater number, " + asRoot
	case setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		why = "AppArmor restricts them: give bondstack a profile with \"userns,\", or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, " + asRoot
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS):
		why = "this kernel has none (CONFIG_USER_NS): run bondstack as root"
	}
	return fmt.Errorf("no user namespace, which bondstack needs without root: %w; %s", err, why)
}

// explainNamespaces adds the way out where the kernel allows no further
// namespaces of one of some kinds, as its settings name them.
func explainNamespaces(err error, kinds ...string) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EUSERS) {
		return err
	}
	var settings []string
	for _, kind := range kinds {
		settings = append(settings, fmt.Sprintf("user.max_%s_namespaces", kind))
	}
	return fmt.Errorf("%w: there are as many namespaces as the kernel allows: sysctl -w %s with a greater number", err, strings.Join(settings, " and "))
}
