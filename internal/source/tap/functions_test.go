//go:build linux

package tap

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// until ends a watch at the first event of a kind.
type until struct {
	*recording.Recording
	kind string
	end  func()
}

func (u until) Event(e recording.Event) {
	u.Recording.Event(e)
	if e.Kind == u.kind {
		u.end()
	}
}

// TestInternals: the functions of a server are seen at work: its cron runs ten times per second.
func TestInternals(t *testing.T) {
	port := startServer(t)
	pid := serverPID(t, port)
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
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	seen := until{recording.New(), recording.KindInternal, end}
	node := Node{Address: fmt.Sprintf("127.0.0.1:%d", port), Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{
		127, 0,
		0, 1,
	}), uint16(port)), PID: pid}
	source, err := Open(Options{
		Clock: clock.New(), Files: host.Root{}, Sink: seen, Nodes: []Node{node},
		MinWork: time.Nanosecond,
	})
	needs(t, err)
	defer func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}()
	if blind := source.Blind(); slices.ContainsFunc(blind,
		func(b recording.BlindSpot) bool { return b.What == "functions inside of "+node.Address }) {
		t.Fatal(blind)
	}
	run(t, stampers(t, port, 1, 1), 5) // the thread has clocks after it
	if err := source.Run(ctx); err != nil {
		t.Fatal(err)
	}
	seen.Index()
	for _, name := range []string{"tap.hook_runs", "tap.hook_ns", "tap.hook_measured_ns"} { // see hook_cost.go
		if v, ok := seen.Series(recording.SourceTap, recording.SubjectSelf, name).Last(); !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if source.cost.measuring != nil {
		t.Error("the kernel measures its programs still")
	}
	if !slices.ContainsFunc(seen.Events, func(e recording.Event) bool {
		return e.Kind == recording.KindInternal && e.Subject == node.Address && e.DurationNs > 0
	}) {
		t.Errorf("no function of the server was seen in a minute, in %d events", len(seen.Events))
	}
}
