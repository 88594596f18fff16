package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Places of mounts.
const (
	procFolder    = "/proc"
	sysFolder     = "/sys"
	controlGroups = "/sys/fs/cgroup"
	resolverFile  = "/etc/resolv.conf"
)

// quiet are the flags of mounts of the kernel's own file systems.
const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountAll makes the mounts of the calling process's mount namespace its own.
func mountAll(s initSettings) error {
	// What is mounted here is not to be seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts inside: %w", err)
	}
	if err := mountResolver(s); err != nil {
		return err
	}
	// Inside of a container the kernel may allow neither, since the container
	// hides parts: then they stay as they are.
	mountSystem()
	_ = unix.Mount("proc", procFolder, "proc", quiet, "")
	return nil
}

// mountResolver puts a file in place of /etc/resolv.conf that is in no folder.
func mountResolver(s initSettings) error {
	if _, err := os.Stat(resolverFile); errors.Is(err, os.ErrNotExist) && !s.MustResolve {
		return nil
	} else if err != nil {
		return fmt.Errorf("--dns: there is no file in whose place to put the servers: %w; make an empty one, or leave --dns out", err)
	}
	if err := makeResolver(s.Resolver); err != nil {
		return fmt.Errorf("make %s: %w", resolverFile, err)
	}
	return nil
}

// makeResolver makes the file in a file system of its own, which is on a folder
// that is always there until the file is in its place.
func makeResolver(text string) error {
	if err := unix.Mount("tmpfs", sysFolder, "tmpfs", quiet, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	defer unix.Unmount(sysFolder, unix.MNT_DETACH)
	file := sysFolder + "/resolv.conf"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(file, resolverFile, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind it: %w", err)
	}
	return nil
}

// mountSystem has /sys/class/net show the namespace's devices. The control groups
// that are mounted below stay.
func mountSystem() {
	groups, err := unix.OpenTree(unix.AT_FDCWD, controlGroups, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err == nil {
		defer unix.Close(groups)
	}
	if unix.Mount("sysfs", sysFolder, "sysfs", quiet, "") != nil || err != nil {
		return
	}
	_ = unix.MoveMount(groups, "", unix.AT_FDCWD, controlGroups, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// allowPing lets a command without rights ping, by sockets that are for it.
func allowPing() {
	group := strconv.Itoa(os.Getegid())
	_ = os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte(group+" "+group), 0)
}
