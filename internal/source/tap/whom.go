//go:build linux

package tap

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// chosen decides which calls are passed on, and counts them.
type chosen struct {
	Whom
	looks   map[int]look
	told    recording.Whom
	calls   int64                     // of the connections that have ended
	open    map[netip.AddrPort]uint64 // calls so far of those that have not, by the client's end
	seen    map[string]int            // processes that are not meant, by what they are
	written recording.Whom
}

// look is what was found about a process at a time.
type look struct {
	at   int64
	is   bool
	what string // it is, as far as matters; empty where it had ended before it was looked at
}

const (
	lookAge  = int64(1e9) // nanoseconds: a process may change its name, or be moved into its container
	maxLooks = 8192
	maxSeen  = 16 // processes that are named where none was meant
)

func newChosen(w Whom) *chosen {
	return &chosen{
		Whom: w, looks: map[int]look{}, told: recording.Whom{Only: w.String()},
		open: map[netip.AddrPort]uint64{}, seen: map[string]int{},
	}
}

// means says whether a process is meant; 0 is one of another host. Its name is that of the thread that was last seen to
// call.
func (c *chosen) means(p process, now int64) look {
	pid := p.pid
	if pid == 0 {
		return look{what: "no process of this host"}
	}
	l, known := c.looks[pid]
	if known && now-l.at < lookAge {
		return l
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // of one that has just ended: empty
	if err != nil && known {
		return l
	}
	if len(c.looks) >= maxLooks {
		c.looks = map[int]look{}
	}
	fresh := look{at: now}
	if comm := strings.TrimSuffix(string(name), "\n"); err == nil {
		fresh.is = (c.PID == 0 || c.PID == pid) && (c.Comm == "" || commOf(c.Comm) == comm) && (c.Container == "" ||
			inContainer(groups, c.Container))
		fresh.what = fmt.Sprintf("%s[%d]", comm, pid)
		if c.Container != "" {
			fresh.what = container(groups)
		}
	} else {
		// It has ended: of a process that is so short the thread that called is as good as any other.
		fresh.is = (c.PID == 0 || c.PID == pid) && (c.Comm == "" || p.comm != "" && commOf(c.Comm) == p.comm) &&
			c.Container == ""
		if p.comm != "" && c.Container == "" {
			fresh.what = fmt.Sprintf("%s[%d]", p.comm, pid)
		}
	}
	c.looks[pid] = fresh
	return fresh
}

// takes decides on a call, by the processes at both ends.
func (c *chosen) takes(client, server process, now int64) (is, known bool) {
	a, b := c.means(client, now), c.means(server, now)
	if a.is || b.is {
		return true, true
	}
	for _, l := range []look{a, b} {
		if l.what != "" && len(c.seen) < 10*maxSeen {
			c.seen[l.what]++
		}
	}
	return false, a.what != "" && b.what != ""
}

// leave counts a call that is left out.
func (c *chosen) leave(known bool) {
	if known {
		c.told.Others++
	} else {
		c.told.Unknown++
	}
}

// had notes how many calls a connection of those who are meant has had: from the client's end, where that is on this
// host.
func (c *chosen) had(role uint8, calls uint64, client netip.AddrPort, here bool) {
	if role == roleClient || !here {
		c.open[client] = max(c.open[client], calls)
	}
}

// used is had for what a connection tells of itself, and at its end.
func (c *chosen) used(e *kernelConnEvent, client netip.AddrPort, ends [2]process, now int64) {
	here := ends[0].pid != 0
	if e.Role == roleServer && here || !c.means(ends[0], now).is && !c.means(ends[1], now).is {
		return
	}
	c.had(e.Role, e.Calls, client, here)
	if e.Type == evClose {
		c.calls += int64(c.open[client])
		delete(c.open, client)
	}
}

// tell gives what is known up to now, and whether that is news.
func (c *chosen) tell() (recording.Whom, bool) {
	c.told.Calls = c.calls
	for _, n := range c.open {
		c.told.Calls += int64(n)
	}
	c.told.Seen = nil
	if c.told.Matched == 0 && c.told.Calls == 0 {
		c.told.Seen = slices.SortedFunc(maps.Keys(c.seen), func(a, b string) int {
			return cmp.Or(c.seen[b]-c.seen[a],
				strings.Compare(a, b))
		})
		c.told.Seen = c.told.Seen[:min(len(c.told.Seen), maxSeen)]
	}
	news := !c.told.Equal(c.written)
	c.written = c.told
	return c.told, news
}

// commOf cuts a name as the kernel does (TASK_COMM_LEN of include/linux/sched.h).
func commOf(name string) string { return name[:min(len(name), 15)] }

// inContainer looks for an id, or for a part of a path, in /proc/PID/cgroup. What may be an id must begin where one
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
