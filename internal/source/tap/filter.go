//go:build linux

package tap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// filter decides which calls are passed on, and counts them.
type filter struct {
	ProcessFilter
	files   Files
	checked map[int]checkedProcess
	summary recording.SelectedCalls
	written recording.SelectedCalls // summary, as the recording has it
	calls   int64                   // of the connections that have ended
	open    map[clientEnd]uint64    // calls so far of those that have not, by the client's end
	others  map[string]int          // processes that are not selected, by what they are
}

// checkedProcess is what was found about a process at a time.
type checkedProcess struct {
	at       int64
	selected bool
	what     string // it is, as far as matters; empty where it had ended before it was checked
}

const (
	checkAge   = int64(1e9) // nanoseconds: a process may change its name, or be moved into its container
	maxChecked = 8192
	maxOthers  = 16 // processes that are named where none was selected
)

func newFilter(p ProcessFilter, files Files) *filter {
	return &filter{
		ProcessFilter: p, files: files, checked: map[int]checkedProcess{},
		summary: recording.SelectedCalls{Only: p.String()},
		open:    map[clientEnd]uint64{}, others: map[string]int{},
	}
}

// check says whether a process is selected; 0 is one of another host. Its name is that of the thread that last made a
// call.
func (f *filter) check(p process, now int64) checkedProcess {
	if p.pid == 0 {
		return checkedProcess{what: "no process of this host"}
	}
	last, known := f.checked[p.pid]
	if known && now-last.at < checkAge {
		return last
	}
	name, err := f.files.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
	groups, _ := f.files.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid)) // of one that has just ended: empty
	if err != nil && known {
		return last
	}
	if len(f.checked) >= maxChecked {
		f.checked = map[int]checkedProcess{}
	}
	fresh := f.checkEnded(p)
	if err == nil {
		fresh = f.checkRunning(p.pid, strings.TrimSuffix(string(name), "\n"), groups)
	}
	fresh.at = now
	f.checked[p.pid] = fresh
	return fresh
}

func (f *filter) checkRunning(pid int, comm string, groups []byte) checkedProcess {
	c := checkedProcess{what: fmt.Sprintf("%s[%d]", comm, pid)}
	c.selected = (f.PID == 0 || f.PID == pid) && (f.Comm == "" || commOf(f.Comm) == comm) &&
		(f.Container == "" || inContainer(groups, f.Container))
	if f.Container != "" {
		c.what = container(groups)
	}
	return c
}

// checkEnded is about a process that has ended: when it is so short, the thread that called is as good as any other.
func (f *filter) checkEnded(p process) checkedProcess {
	c := checkedProcess{}
	c.selected = (f.PID == 0 || f.PID == p.pid) && (f.Comm == "" || p.comm != "" && commOf(f.Comm) == p.comm) &&
		f.Container == ""
	if p.comm != "" && f.Container == "" {
		c.what = fmt.Sprintf("%s[%d]", p.comm, p.pid)
	}
	return c
}

// selects decides on a call, by the processes at both ends.
func (f *filter) selects(client, server process, now int64) (is, known bool) {
	a, b := f.check(client, now), f.check(server, now)
	if a.selected || b.selected {
		return true, true
	}
	for _, c := range []checkedProcess{a, b} {
		if c.what != "" && len(f.others) < 10*maxOthers {
			f.others[c.what]++
		}
	}
	return false, a.what != "" && b.what != ""
}

// selects reports whether the process filter, if there is one, selects the process of a client.
func (r *recorder) selects(client clientEnd) bool {
	if r.filter == nil {
		return true
	}
	is, _ := r.filter.selects(r.clients[client], process{}, r.Clock.Now())
	return is
}

// leaveOut counts a call that is not passed on.
func (f *filter) leaveOut(known bool) {
	if known {
		f.summary.Others++
	} else {
		f.summary.Unknown++
	}
}

// countCalls notes how many calls a connection of a selected process has had: from the client's end, where that is on
// this host.
func (f *filter) countCalls(role kernelRole, calls uint64, client clientEnd, here bool) {
	if role == roleClient || !here {
		f.open[client] = max(f.open[client], calls)
	}
}

// conn does countCalls for what a connection reports of itself, and at its end.
func (f *filter) conn(e *kernelConnEvent, client clientEnd, from, to process, now int64) {
	here := from.pid != 0
	if e.Role == roleServer && here || !f.check(from, now).selected && !f.check(to, now).selected {
		return
	}
	f.countCalls(e.Role, e.Calls, client, here)
	if e.Type == evClose {
		f.calls += int64(f.open[client])
		delete(f.open, client)
	}
}

// summarize gives what is known up to now, and whether that is new.
func (f *filter) summarize() (s recording.SelectedCalls, changed bool) {
	f.summary.Calls = f.calls
	for _, n := range f.open {
		f.summary.Calls += int64(n)
	}
	f.summary.Seen = nil
	if f.summary.Matched == 0 && f.summary.Calls == 0 {
		seen := slices.SortedFunc(maps.Keys(f.others), func(a, b string) int {
			return cmp.Or(f.others[b]-f.others[a], strings.Compare(a, b))
		})
		f.summary.Seen = seen[:min(len(seen), maxOthers)]
	}
	changed = !f.summary.Equal(f.written)
	f.written = f.summary
	return f.summary, changed
}

// commOf cuts a name as the kernel does (TASK_COMM_LEN of include/linux/sched.h).
func commOf(name string) string { return name[:min(len(name), 15)] }

// inContainer searches for an id, or for a part of a path, in /proc/PID/cgroup. What may be an id must begin where one
// does.
func inContainer(groups []byte, want string) bool {
	isID := strings.Trim(want, "0123456789abcdef") == ""
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(line, ":")
		_, path, _ := strings.Cut(rest, ":")
		for at := 0; ; {
			i := strings.Index(path[at:], want)
			if i < 0 {
				break
			}
			at += i
			if !isID || at == 0 || !isWord(path[at-1]) {
				return true
			}
			at++
		}
	}
	return false
}

func isWord(b byte) bool { return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// container names where a process runs by the deepest of its cgroups.
func container(groups []byte) string {
	deepest := "/"
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if _, path, _ := strings.Cut(rest, ":"); strings.Count(path, "/") > strings.Count(deepest, "/") ||
			deepest == "/" && len(path) > 1 {
			deepest = path
		}
	}
	if deepest == "/" {
		return "no container"
	}
	return deepest
}
