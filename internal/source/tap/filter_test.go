//go:build linux

package tap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

func TestInContainer(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	docker, v1 := "0::/system.slice/docker-"+id+".scope\n",
		"12:cpu,cpuacct:/kubepods/burstable/pod7/"+id+"\n1:name=systemd:/\n0::/\n"
	for _, c := range []struct {
		groups, want string
		in           bool
	}{
		{docker, id, true},
		{docker, "0123", true},
		{docker, "docker-0123", true},
		{docker, "123456", false},
		{docker, "system.slice", true},
		{v1, "012345678", true},
		{v1, "pod7", true},
		{v1, "burstable/pod7", true},
		{v1, "cpuacct", false},
		{v1, "cdef", false},
		{"", "a", false},
		{"rubbish", "rubbish", false},
	} {
		if got := inContainer([]byte(c.groups), c.want); got != c.in {
			t.Errorf("%q in %q: %v", c.want, c.groups, got)
		}
	}
	for groups, want := range map[string]string{
		docker: "/system.slice/docker-" + id + ".scope",
		v1:     "/kubepods/burstable/pod7/" + id, "0::/\n": "no container", "": "no container",
	} {
		if got := container([]byte(groups)); got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
}

// filterMade are the processes of TestRealProcessFilter.
type filterMade struct{ Server, Checkout int }

// filters by name: of the processes of a watch, and how those begin whose calls are passed on.
var filters = map[string]func(made filterMade) (ProcessFilter, string){
	"comm": func(filterMade) (ProcessFilter, string) { return ProcessFilter{Comm: "checkout"}, "checkout[" },
	"pid": func(made filterMade) (ProcessFilter, string) {
		return ProcessFilter{PID: made.Checkout}, fmt.Sprintf("checkout[%d]", made.Checkout)
	},
	"server": func(made filterMade) (ProcessFilter, string) { return ProcessFilter{PID: made.Server}, "" },
	"both hold": func(made filterMade) (ProcessFilter, string) {
		return ProcessFilter{PID: made.Checkout, Comm: "billing"}, "nobody"
	},
	"nobody": func(filterMade) (ProcessFilter, string) {
		return ProcessFilter{Container: "no-such-container"}, "nobody"
	},
}

// TestProcessFilter: only calls of the selected processes are passed on; what they waited for is recorded whichever
// process did it; and the rest is counted.
func TestProcessFilter(t *testing.T) {
	_, made := playTape[filterMade](t, "filter", nil)
	for name, of := range filters {
		t.Run(name, func(t *testing.T) {
			only, _ := of(made)
			rec, _ := playTape[filterMade](t, "filter", func(o *Options) { o.Processes = only })
			checkFilter(t, rec, made, name)
		})
	}
}

func checkFilter(t *testing.T, rec *recording.Recording, made filterMade, name string) {
	t.Helper()
	only, prefix := filters[name](made)
	summary, ok := recording.SelectedCallsOf(rec.Meta)
	if !ok || summary.Matched != len(rec.Calls) || summary.Only != only.String() {
		t.Errorf("%d calls, summary %+v (%v)", len(rec.Calls), summary, ok)
	}
	waited := 0
	for _, c := range rec.Calls {
		if !strings.HasPrefix(c.Client, prefix) {
			t.Errorf("a call of %s", c.Client)
		}
		if c.Op == "GET" && slices.ContainsFunc(rec.SegmentsOf(c.ID), func(s recording.Segment) bool {
			return strings.Contains(s.Culprit, "DEBUG SLEEP from") && strings.Contains(s.Culprit, "redis-cli[")
		}) {
			waited++
		}
	}
	switch prefix {
	case "nobody":
		if len(rec.Calls) != 0 || summary.Others == 0 || summary.Calls != 0 || len(summary.Seen) == 0 {
			t.Errorf("%d calls, summary %+v", len(rec.Calls), summary)
		}
	case "":
		if waited == 0 || summary.Others+summary.Unknown != 0 {
			t.Errorf("%d calls waited, summary %+v", waited, summary)
		}
	default:
		if waited == 0 || summary.Others == 0 || summary.Calls < int64(summary.Matched) || len(summary.Seen) != 0 {
			t.Errorf("%d calls waited, summary %+v", waited, summary)
		}
	}
}
