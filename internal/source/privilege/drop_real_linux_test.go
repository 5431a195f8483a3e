package privilege

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"slowpath/internal/house/needs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"slowpath/internal/source/host"
)

// childFile names the file of root to the process that loses its rights.
const childFile = "SLOWPATH_TEST_FILE_OF_ROOT"

// TestDrop builds this package's tests without cgo, as releases are built, and runs itself in a process that loses its
// rights.
func TestDrop(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF)
	if file := os.Getenv(childFile); file != "" {
		testDropped(t, file)
		return
	}
	dir := t.TempDir()
	file, program := filepath.Join(dir, "of-root"), filepath.Join(dir, "privilege.test")
	if err := os.WriteFile(file, []byte("root's"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	child := exec.Command(program, "-test.v", "-test.run", "^TestDrop$")
	child.Env = append(os.Environ(), childFile+"="+file)
	out, err := child.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestDrop")) {
		t.Fatalf("%v: %s", err, out)
	}
	if body, err := os.ReadFile(file); err != nil || string(body) != "root's" {
		t.Errorf("root's file holds %q, %v", body, err)
	}
}

// testDropped gives up the rights of this process, and tries what it may not do any more, and what it still may.
func testDropped(t *testing.T, file string) {
	t.Helper()
	raw, multi := loadPrograms(t)
	// A process of root, which this one may not kill later: it ends with its stdin.
	other := exec.Command("cat")
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET} // as in a container
	stdin, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stdin.Close(); _ = other.Wait() }()
	here := host.Root{Spaces: host.HoldSpaces(host.Root{})}
	defer here.Spaces.Close()
	if err := Drop(nil, ""); err != nil {
		t.Fatal(err)
	}
	const setting = "/proc/sys/net/core/somaxconn"
	if _, err := here.ReadInNetNS(other.Process.Pid, setting); err != nil {
		t.Errorf("reading a setting of a network namespace that was entered before: %v", err)
	}
	if _, err := (host.Root{}).ReadInNetNS(other.Process.Pid, setting); !errors.Is(err, os.ErrPermission) {
		t.Errorf("entering a network namespace: %v", err)
	}
	// Hooks that a watch attaches late, by programs that were loaded before.
	if l, err := link.AttachTracing(link.TracingOptions{Program: raw}); err != nil {
		t.Errorf("attaching a tracepoint: %v", err)
	} else {
		l.Close()
	}
	attachUprobe(t, multi, other)
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", other.Process.Pid)); err != nil {
		t.Errorf("reading a file that belongs to another process: %v", err)
	}
	var all sync.WaitGroup
	for range 8 { // on threads of their own
		all.Go(func() {
			runtime.LockOSThread()
			for what, err := range tries(file, other.Process.Pid) {
				if !errors.Is(err, os.ErrPermission) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	all.Wait()
	checkThreads(t)
	sh := exec.Command("/bin/sh", "-c", "cat /proc/self/status")
	if out, err := sh.CombinedOutput(); err != nil || !strings.Contains(string(out), "CapEff:\t0000000000000000") {
		t.Errorf("a program that it executes: %v: %s", err, out)
	}
}

// loadPrograms loads a program for a tracepoint, and one for functions of other processes.
func loadPrograms(t *testing.T) (raw, uprobe *ebpf.Program) {
	t.Helper()
	for _, p := range []struct {
		spec ebpf.ProgramSpec
		to   **ebpf.Program
	}{
		{ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_switch"}, &raw},
		{ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti}, &uprobe},
	} {
		p.spec.License, p.spec.Instructions = "GPL", asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
		loaded, err := ebpf.NewProgram(&p.spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { loaded.Close() })
		*p.to = loaded
	}
	return raw, uprobe
}

// attachUprobe hooks a function of the C library of another process, as is done for runtimes and for TLS.
func attachUprobe(t *testing.T, p *ebpf.Program, other *exec.Cmd) {
	t.Helper()
	ex, err := link.OpenExecutable(fmt.Sprintf("/proc/%d/exe", other.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ex.UprobeMulti(nil, p, &link.UprobeMultiOptions{
		Addresses: []uint64{0x2000}, PID: uint32(other.Process.Pid),
	})
	if err != nil {
		t.Errorf("attaching to a function of another process: %v", err)
		return
	}
	l.Close()
}

// tries are what must be refused: of the kernel, of a file of root, and of a process of root.
func tries(file string, pid int) map[string]error {
	loads, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err == nil {
		loads.Close()
	}
	out := map[string]error{"loading a program": err}
	_, out["making a map"] = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	_, out["writing root's file"] = os.OpenFile(file, os.O_WRONLY, 0)
	out["a file in root's directory"] = os.WriteFile(file+".new", nil, 0o600)
	out["removing root's file"] = os.Remove(file)
	out["killing init"] = unix.Kill(1, 0)
	out["becoming root"] = unix.Setresuid(0, 0, 0)
	out["entering a namespace"] = unix.Unshare(unix.CLONE_NEWNET)
	intoProcess(pid, out)
	return out
}

// intoProcess tries to change another process, or to take what it has open.
func intoProcess(pid int, out map[string]error) {
	out["attaching to a process"] = unix.PtraceAttach(pid)
	if out["attaching to a process"] == nil {
		_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
		_ = unix.PtraceDetach(pid)
	}
	here, there := []unix.Iovec{{Base: new(byte), Len: 1}}, []unix.RemoteIovec{{Base: 1, Len: 1}}
	_, out["reading memory of a process"] = unix.ProcessVMReadv(pid, here, there, 0)
	_, out["writing memory of a process"] = unix.ProcessVMWritev(pid, here, there, 0)
	_, out["memory of a process as a file"] = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	handle, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(handle)
		_, err = unix.PidfdGetfd(handle, 0, 0)
	}
	out["taking a descriptor of a process"] = err
}

// checkThreads reads what the kernel says of each thread.
func checkThreads(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d threads, %v", len(files), err)
	}
	mask := fmt.Sprintf("%016x", maskOf(kept))
	for _, f := range files {
		status, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) { // it has ended
			continue
		}
		for _, want := range []string{
			"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "NoNewPrivs:\t1\n",
			"CapPrm:\t" + mask, "CapEff:\t" + mask, "CapInh:\t0000000000000000", "CapAmb:\t0000000000000000",
			"CapBnd:\t0000000000000000",
		} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s has not %q: %v\n%s", f, want, err, status)
			}
		}
	}
}
