//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestCollectionWatch hooks the runtime of Debian's Python.
func TestCollectionWatch(t *testing.T) {
	needs.Real(t, needs.BPF, needs.Python)
	const python = "/usr/bin/python3" // others in PATH may be built without probes
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
	attached(t, err)
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

// collects reads each reply at once, and collects garbage before it calls again.
const collects = `
import gc, select, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
events = select.epoll()
events.register(s, select.EPOLLIN)
heap = [[i] for i in range(500_000)]
gc.disable()
for _ in range(40):
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    events.poll()
    s.recv(64)
    gc.collect()
    events.poll(.002)
`

// TestCollectionsBetweenCalls: the runtime of a client whose event loop stalls is watched, though no reply lies unread.
func TestCollectionsBetweenCalls(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.Python)
	const python = "/usr/bin/python3"
	err := withELF(python, func(f *elf.File, _ string) error {
		if _, runtime := findCollector(f); runtime == "" {
			t.Skip("this Python was built without probes")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := serverAt(t, onePort(t, 1))
	w := watchTaped(t, Options{Nodes: []Node{n}, Slow: 5 * time.Second}) // no reply lies unread for so long
	if out, err := exec.Command(python, "-c", collects, strconv.Itoa(n.Port)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.stop(t)
	if !slices.ContainsFunc(w.rec.Events, func(e recording.Event) bool { return e.Kind == recording.KindCollection }) {
		t.Error("no collection was seen")
	}
}
