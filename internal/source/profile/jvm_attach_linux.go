package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/source/hostfs"
)

// attach has a JVM open the socket on which it takes commands, as the attach API of the JDK does
// (sun.tools.attach.VirtualMachineImpl): by a file in its /tmp that belongs to its user, and SIGQUIT. Nothing of the
// process is executed. SIGQUIT would end another program: only a process that has a JVM in it and catches SIGQUIT gets
// one, and by a handle, so that its number cannot be another process's meanwhile.
func attach(ctx context.Context, fs hostfs.FS, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("%w: the process %d: %w", ErrTarget, pid, err)
	}
	defer unix.Close(handle)
	user, group, err := catchesQuit(fs, pid)
	if err != nil {
		return fmt.Errorf("%w: the process %d %w", ErrTarget, pid, err)
	}
	dir, err := unix.Open(fs.Path(fmt.Sprintf("/proc/%d/root/tmp", pid)),
		unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: the /tmp of the JVM %d: %w; run as root or as its user", ErrTarget, pid, err)
	}
	defer unix.Close(dir)
	name := fmt.Sprintf(".attach_pid%d", hostfs.NamespacePID(fs, pid))
	file, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		defer func() { _ = unix.Unlinkat(dir, name, 0) }() // the JVM may have removed it
		err = unix.Fchown(file, user, group)
		unix.Close(file)
	case errors.Is(err, unix.EEXIST): // somebody else is about to attach
		err = nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(handle, unix.SIGQUIT, nil, 0)
	}
	if err != nil {
		return fmt.Errorf("%w: attaching to the JVM %d: %w; run as root or as its user", ErrTarget, pid, err)
	}
	for !hasSocket(fs, pid) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: the JVM %d did not open its attach socket (-XX:+DisableAttachMechanism, or it "+
				"hangs)", ErrTarget, pid)
		}
	}
	return nil
}

// catchesQuit gives the user and the group of a process that is a JVM and handles SIGQUIT; else an error that says
// which of it is not so.
func catchesQuit(fs hostfs.FS, pid int) (user, group int, err error) {
	maps, err := fs.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	status, err := fs.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	caught := uint64(0)
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case name == "Uid" && len(fields) > 1: // the effective one is the second
			user, err = strconv.Atoi(fields[1])
		case name == "Gid" && len(fields) > 1:
			group, err = strconv.Atoi(fields[1])
		case name == "SigCgt" && len(fields) == 1:
			caught, err = strconv.ParseUint(fields[0], 16, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	switch {
	case !hasJVM(maps):
		return 0, 0, errors.New("has no libjvm.so: it is no JVM of HotSpot")
	case caught>>(uint(unix.SIGQUIT)-1)&1 == 0:
		return 0, 0, errors.New("does not catch SIGQUIT (-Xrs), by which a JVM is asked to open its attach socket")
	}
	return user, group, nil
}

// hasSocket reports whether there is an attach socket of a process, and not a link to one. Who listens at it only a
// connection shows (answersItself).
func hasSocket(fs hostfs.FS, pid int) bool {
	var st unix.Stat_t
	return unix.Lstat(fs.Path(socketName(fs, pid)), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// answersItself reports whether a process itself is at the other end of a connection.
func answersItself(c net.Conn, pid int) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		is = err == nil && int(peer.Pid) == pid
	})
	return err == nil && is
}
