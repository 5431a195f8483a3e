package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/stacks"
)

// jvm is a Java virtual machine on this host. It is asked over the socket that jcmd and jstack use (attach API of
// HotSpot, attachListener_posix.cpp): a thread dump costs it a safepoint, and no process is started.
type jvm struct {
	Options
	pid    int
	socket string
	what   recording.Profiled
}

// IsJVM reports whether a process has the library of a Java virtual machine.
func IsJVM(fs hostfs.FS, pid int) bool {
	maps, err := fs.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err == nil && hasJVM(maps)
}

// hasJVM is by a process's list of mappings.
func hasJVM(maps []byte) bool { return bytes.Contains(maps, []byte("/libjvm.so")) }

const maxDump = 32 << 20 // bytes

// attached finds the socket of a process. Where there is none yet, the JVM is asked to open it.
func attached(ctx context.Context, o Options, pid int) (*jvm, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: a JVM named by its pid needs Linux: %w", ErrTarget, errors.ErrUnsupported)
	}
	comm, err := o.FS.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return nil, fmt.Errorf("%w: there is no process %d on this host", ErrTarget, pid)
	}
	name := strings.TrimSpace(string(comm))
	if name != "java" {
		return nil, fmt.Errorf("%w: process %d is %s, and not java; for a program in Go give the HOST:PORT of its "+
			"net/http/pprof", ErrTarget, pid, name)
	}
	j := &jvm{
		Options: o, pid: pid,
		socket: socketName(o.FS, pid),
		what:   recording.Profiled{PID: pid, Name: name, Runtime: "jvm"},
	}
	if !hasSocket(o.FS, pid) {
		if err := attach(ctx, o.FS, pid); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func openJVM(ctx context.Context, o Options, pid int) (app, error) {
	j, err := attached(ctx, o, pid)
	if err != nil {
		return nil, err
	}
	if _, err := j.dump(ctx); err != nil {
		return nil, err
	}
	return j, nil
}

// socketName is where a JVM has its attach socket.
func socketName(fs hostfs.FS, pid int) string {
	return fmt.Sprintf("/proc/%d/root/tmp/.java_pid%d", pid, hostfs.NamespacePID(fs, pid))
}

// dump reads the stacks of all threads.
func (j *jvm) dump(ctx context.Context) (*stacks.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	c, err := j.Dial(ctx, "unix", j.FS.Path(j.socket))
	if err != nil {
		return nil, fmt.Errorf("the JVM %d %w: %w; run as root or as its user", j.pid, ErrUnreachable, err)
	}
	defer c.Close()
	if !answersItself(c, j.pid) {
		return nil, fmt.Errorf("%w: another process than the JVM %d listens at its attach socket", ErrTarget, j.pid)
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // which has passed
	// Version 1 of the protocol, the command, three arguments: each ends with NUL.
	if _, err := io.WriteString(c, "1\x00threaddump\x00\x00\x00\x00"); err != nil {
		return nil, fmt.Errorf("the JVM %d %w: asking for its threads: %w", j.pid, ErrUnreachable, err)
	}
	answer, err := io.ReadAll(io.LimitReader(c, maxDump))
	if err != nil {
		return nil, fmt.Errorf("the JVM %d %w: reading its threads: %w", j.pid, ErrUnreachable, err)
	}
	code, text, _ := strings.Cut(string(answer), "\n")
	p := parseDump(text)
	if code != "0" || len(p.Stacks) == 0 {
		return nil, fmt.Errorf("%w: the JVM %d gives no thread dump (code %.20q); HotSpot has one (jcmd %d "+
			"Thread.print)", ErrTarget, j.pid, code, j.pid)
	}
	return p, nil
}

func (j *jvm) watch(ctx context.Context, s *Source) {
	k := s.keeper(recording.ProcessPrefix + strconv.Itoa(j.pid))
	k.describe(j.what)
	var total time.Duration
	k.repeatedly(ctx, func() (time.Duration, bool) {
		start := k.Clock.Now()
		p, err := j.dump(ctx)
		took := k.since(start)
		if ctx.Err() != nil {
			return took, false
		}
		if err == nil {
			var body []byte
			if body, err = stacks.Write(p); err == nil {
				k.keep(recording.ProfileThreads, body)
			}
		}
		if err != nil {
			k.blind(fmt.Sprintf("threads of the JVM %d for the rest of the watch", j.pid), err.Error(), "")
			return took, false
		}
		total += took
		k.sample("read_ns", float64(total))
		return took, true
	})
}
