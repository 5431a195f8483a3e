//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// until passes on that there was an event of a kind.
type until struct {
	*recording.Recording
	kind string
	seen chan struct{}
}

func (u until) Event(e recording.Event) {
	u.Recording.Event(e)
	if e.Kind == u.kind {
		select {
		case u.seen <- struct{}{}:
		default:
		}
	}
}

func TestRealInternals(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port, pid := startServerPID(t, "127.0.0.1")
	err := withELF(fmt.Sprintf("/proc/%d/exe", pid), func(f *elf.File, _ string) error {
		has, err := functionsOf(f)
		if err == nil && has["databasesCron"] == 0 {
			err = errors.New("it is stripped")
		}
		return err
	})
	if err != nil {
		t.Skip("needs a redis-server that names its functions: ", err)
	}
	nodes := nodeAt("127.0.0.1", port)
	nodes[0].PID = pid
	p := openTaped(t, Options{Nodes: nodes, MinWork: time.Nanosecond})
	if blind := p.Blind(); slices.ContainsFunc(blind, func(b recording.BlindSpot) bool {
		return b.What == "functions inside of server"
	}) {
		t.Fatal(blind)
	}
	sink := until{p.rec, recording.KindInternal, make(chan struct{}, 1)}
	p.recorder.Sink = sink
	run(t, stampers(t, port, 1, 1), 5) // the thread has clocks after it
	p.start(t)
	<-sink.seen
	p.stop(t)
	for _, name := range []string{"tap.hook_runs", "tap.hook_ns", "tap.hook_measured_ns"} { // see hook_cost.go
		if v, ok := p.rec.Series(recording.SourceTap, recording.SubjectSelf, name).Last(); !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if p.cost.measuring != nil {
		t.Error("the kernel measures its programs still")
	}
	checked(t, p, "internals", "server", checkInternals)
}
