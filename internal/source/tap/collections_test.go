//go:build linux

package tap

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/source/host"
)

// note is one of .note.stapsdt.
func note(name string, at, base, semaphore uint64) []byte {
	body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at),
		base), semaphore)
	body = append(body, "python\x00"+name+"\x00-4@%eax\x00"...)
	out := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 8),
		uint32(len(body))), stapNoteType)
	out = append(append(out, "stapsdt\x00"...), body...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

func TestEachProbe(t *testing.T) {
	data := append(note("gc__start", 100, 7, 0), note("gc__done", 200, 7, 300)...)
	got := map[string][3]uint64{}
	eachProbe(data, binary.LittleEndian, func(name string, at, base, semaphore uint64) {
		got[name] = [3]uint64{
			at, base,
			semaphore,
		}
	})
	if len(got) != 2 || got["python:gc__start"] != [3]uint64{100, 7, 0} || got["python:gc__done"] != [3]uint64{
		200, 7,
		300,
	} {
		t.Errorf("%v", got)
	}
}

func FuzzEachProbe(f *testing.F) {
	f.Add(note("gc__start", 1, 2, 3))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 3, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		eachProbe(data, binary.LittleEndian, func(string, uint64, uint64, uint64) {})
	})
}

// TestCollectionWatch hooks the runtime of Debian's Python.
func TestCollectionWatch(t *testing.T) {
	const python = "/usr/bin/python3" // others in PATH may be built without probes
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs Debian's python3")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: it attaches to a process")
	}
	c := exec.Command(python, "-c", "import sys; print('ready', flush=True); sys.stdin.read()")
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = c.Wait() }()
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	l, err := loadWith(constants{})
	needs(t, err)
	w := newCollectionWatch(l.coll.Programs, host.Root{})
	defer func() {
		if err := errors.Join(w.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}()
	runtime, err := w.hook(uint32(c.Process.Pid))
	if errors.Is(err, os.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("needs uprobes: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if runtime == "" {
		t.Skip("this Python was built without probes")
	}
	if runtime != "python" || w.runtime[uint32(c.Process.Pid)] != "python" {
		t.Errorf("runtime %q", runtime)
	}
}
