package fleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"
)

func TestReusedPidIsNotKilled(t *testing.T) {
	needs.Real(t)
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	r := mustOpen(t, RealHost())
	p, err := r.host.process(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reused := p
	reused.StartTicks--
	if err := r.Release(t.Context(), mustAdd(t, r, Entry{Kind: KindProcess, Process: reused})); err != nil {
		t.Error(err)
	}
	if !r.host.alive(p) {
		t.Error("another process was killed")
	}
	if err := sleep.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := r.Release(t.Context(), mustAdd(t, r, Entry{Kind: KindProcess, Process: p})); err != nil ||
		r.host.alive(p) {
		t.Errorf("a stopped process is left: %v", err)
	}
}

func TestProcessThatIgnoresSIGTERM(t *testing.T) {
	needs.Real(t)
	stubborn := exec.Command("sh", "-c", "trap '' TERM; sleep 600 & while :; do wait; done")
	stubborn.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stubborn.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stubborn.Wait() }()
	h := RealHost()
	p, err := h.process(stubborn.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, exitPoll, func() (bool, error) { return len(h.sessionOf(p)) == 1, nil }); err != nil {
		t.Fatal(err) // its child is not there
	}
	if err := h.end(t.Context(), p); err != nil || h.alive(p) || slices.ContainsFunc(h.sessionOf(p), h.alive) {
		t.Errorf("left: %v", err)
	}
}

func TestFrozenCgroup(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := filepath.Join("/sys/fs/cgroup/freezer", dirPrefix+newID())
	if _, err := os.Stat("/sys/fs/cgroup/freezer/cgroup.procs"); err != nil {
		t.Skip("no freezer of cgroup version 1")
	}
	r := mustOpen(t, RealHost())
	e := mustAdd(t, r, Entry{Kind: KindCgroup, Paths: []string{dir}})
	if err := os.MkdirAll(filepath.Join(dir, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = sleep.Wait() }()
	r.host.rewrite(filepath.Join(dir, "inner", "cgroup.procs"), strconv.Itoa(sleep.Process.Pid))
	r.host.rewrite(filepath.Join(dir, "inner", "freezer.state"), "FROZEN")
	if err := r.Release(t.Context(), e); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the cgroup is left")
	}
	checkNothingLeft(t, r)
}
