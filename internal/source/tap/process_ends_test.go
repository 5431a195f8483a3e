//go:build linux

package tap

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/source/hostfs"
)

// procStats are the files of a host that has no other than /proc/PID/stat; "" is one that may not be read.
type procStats map[string]string

func (s procStats) Path(name string) string { return name }

func (s procStats) ReadFile(name string) ([]byte, error) {
	switch text, ok := s[name]; {
	case !ok:
		return nil, os.ErrNotExist
	case text == "":
		return nil, os.ErrPermission
	default:
		return []byte(text), nil
	}
}

func (s procStats) Open(string) (hostfs.File, error) { return nil, os.ErrNotExist }

func (s procStats) ReadDir(string) ([]string, error) { return nil, os.ErrNotExist }

func (s procStats) Readlink(string) (string, error) { return "", os.ErrNotExist }

func (s procStats) set(pid int, state string, threads, began int) {
	s[statOf(pid)] = fmt.Sprintf("%d (a) b) %s 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 %d 0 %d 99 88\n", pid, state,
		threads, began)
}

func statOf(pid int) string { return fmt.Sprintf("/proc/%d/stat", pid) }

// TestEndedProcessesAreForgotten: what is known of processes that have ended is dropped, and of no other.
func TestEndedProcessesAreForgotten(t *testing.T) {
	const lives, ended, unreaped, reused, hidden, leaderEnded = 1, 2, 3, 4, 5, 6
	files := procStats{}
	watch := &Tap{
		ends:        processEnds{files: files, started: map[uint32]string{}},
		plaintexts:  newPlaintextWatch(map[string]*ebpf.Program{kernelProgOnSslCall: {}}, files),
		collections: newCollectionWatch(map[string]*ebpf.Program{kernelProgOnCollectionBegin: {}}, files),
		recorder:    &recorder{serving: map[uint32]Node{}},
	}
	for pid := lives; pid <= leaderEnded; pid++ {
		files.set(pid, "S", 4, 100)
		watch.recorder.serving[uint32(pid)] = Node{}
		watch.watchCollections(uint32(pid))
		watch.collections.began[thread{uint32(pid), 7}] = 1
		_ = watch.plaintexts.watch(pid, roleServer) // its libraries are not known
		_ = watch.plaintexts.watch(pid, roleClient)
	}
	watch.forgetEnded()
	if n := len(watch.recorder.serving); n != leaderEnded {
		t.Fatalf("%d of %d processes are kept while all live", n, leaderEnded)
	}
	delete(files, statOf(ended))
	files.set(unreaped, "Z", 1, 100)
	files.set(reused, "S", 4, 5000)
	files[statOf(hidden)] = ""
	files.set(leaderEnded, "Z", 3, 100) // other threads go on
	watch.forgetEnded()
	want := []uint32{lives, hidden, leaderEnded}
	ends := map[uint32]bool{}
	for e := range watch.plaintexts.results {
		ends[e.pid] = true
	}
	threads := map[uint32]bool{}
	for of := range watch.collections.began {
		threads[of.process] = true
	}
	for what, got := range map[string][]uint32{
		"serving":   slices.Sorted(maps.Keys(watch.recorder.serving)),
		"hooked":    slices.Sorted(maps.Keys(watch.collections.hooked)),
		"TLS":       slices.Sorted(maps.Keys(ends)),
		"threads":   slices.Sorted(maps.Keys(threads)),
		"looked at": slices.Sorted(maps.Keys(watch.ends.started)),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are kept, want %v", what, got, want)
		}
	}
}

// TestEndsOfUnknownBegin: a process that cannot be read at first is not taken for another one, and one that had ended
// before it was watched is found.
func TestEndsOfUnknownBegin(t *testing.T) {
	const hidden, ended = 1, 2
	files := procStats{statOf(hidden): ""}
	e := processEnds{files: files, started: map[uint32]string{}}
	e.watch(hidden)
	e.watch(ended)
	if got := e.ended(); !slices.Equal(got, []uint32{ended}) {
		t.Errorf("%v have ended, want %v", got, ended)
	}
	files.set(hidden, "S", 1, 100)
	if got := e.ended(); len(got) > 0 {
		t.Errorf("%v have ended", got)
	}
	files.set(hidden, "S", 1, 200)
	if got := e.ended(); !slices.Equal(got, []uint32{hidden}) {
		t.Errorf("%v have ended, want %v", got, hidden)
	}
}

// TestEndsAreLookedAtInTurn: of many processes a part is looked at each time, and each that has ended is found.
func TestEndsAreLookedAtInTurn(t *testing.T) {
	files := procStats{}
	e := processEnds{files: files, started: map[uint32]string{}}
	for pid := 1; pid <= 4*maxEnds; pid++ {
		files.set(pid, "S", 1, pid)
		e.watch(uint32(pid))
	}
	clear(files)
	for range 4 {
		if n := len(e.ended()); n > maxEnds {
			t.Fatalf("%d files are read at a time", n)
		}
	}
	if len(e.started) > 0 {
		t.Errorf("%d processes that have ended are kept", len(e.started))
	}
}
