package hosts

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// ProcessSnapshot is what the host source saw of a process that calls a node, or uses its CPUs.
type ProcessSnapshot struct {
	// PID is the id of the process.
	PID int `json:"-"`
	// Comm is the name of its main thread.
	Comm string `json:"comm"`
	// Cgroup is the path of its CPU cgroup.
	Cgroup string `json:"cgroup"`
	// Self says that it is slowpath.
	Self bool `json:"self"`
	// Libraries are the client libraries that it has.
	Libraries []recording.Library `json:"libraries"`
}

// Processes are the host source's snapshots of calling processes, in order of time. Of those that call through a proxy
// only libraries and runtime are known, since they have no connection to the server itself.
func Processes(c *facts.Case) []ProcessSnapshot {
	return facts.Once(c, "processes", func(c *facts.Case) []ProcessSnapshot {
		out := processesNamed(c, "process")
		for _, p := range processesNamed(c, recording.SnapshotRuntime) {
			if len(p.Libraries) > 0 && process(out, p.PID).PID == 0 {
				out = append(out, p)
			}
		}
		return out
	})
}

func processesNamed(c *facts.Case, name string) (out []ProcessSnapshot) {
	for s, p := range facts.Bodies[ProcessSnapshot](c.Rec, recording.SourceHost, name, recording.ProcessPrefix) {
		if pid, err := strconv.Atoi(s.Subject); err == nil {
			p.PID = pid
			out = append(out, p)
		}
	}
	return out
}

// process is the last snapshot of a process; the zero one where there is none.
func process(all []ProcessSnapshot, pid int) (last ProcessSnapshot) {
	for _, p := range all {
		if p.PID == pid {
			last = p
		}
	}
	return last
}

// CommOf is the name of a process, where a source read it, else that of one of its threads.
func CommOf(c *facts.Case, pid int, thread string) string {
	return cmp.Or(process(Processes(c), pid).Comm, Programs(c)[pid].Comm, thread)
}

// CgroupPath is the path of the CPU cgroup of a client's process; empty where the host source did not see the process.
func CgroupPath(c *facts.Case, pid int) string { return process(Processes(c), pid).Cgroup }

// ServerPID is the id of the server's process, or the proxy's, in the PID namespace of this host; 0 where the host
// source did not see it.
func ServerPID(n *facts.Node) int {
	s, _ := n.Rec.SnapshotOf(recording.SourceHost, n.Address, "process")
	p, _ := recording.BodyOf[recording.ProcessOfNode](s)
	return p.PID
}

// OwnPIDs are slowpath's own processes, as far as the host source saw them.
func OwnPIDs(c *facts.Case) map[int]bool {
	out := map[int]bool{}
	for _, p := range Processes(c) {
		if p.Self {
			out[p.PID] = true
		}
	}
	return out
}

// processSubject is the subject of samples and events about a process.
func processSubject(pid int) string { return fmt.Sprintf("%s%d", recording.ProcessPrefix, pid) }

// HasSingleReader reports whether one thread reads all replies of a process: the time between a reply and its read is
// then that thread's.
func HasSingleReader(c *facts.Case, pid int) bool {
	if readers, ok := c.ProcessSeries(pid, series.Readers).Last(); ok {
		return readers == 1
	}
	threads, ok := c.ProcessSeries(pid, series.ClientThreads).Max()
	return ok && threads == 1
}

// HasNoLoop reports whether a process is known to have no event loop: its threads wait for their own replies.
func HasNoLoop(c *facts.Case, pid int) bool {
	s, ok := c.Rec.SnapshotOf(recording.SourceTap, processSubject(pid), recording.SnapshotWaits)
	return IsGo(c, pid) || ok && recording.ThreadWaitsOf(s.Body).NoLoop
}

// IsGo reports whether a process is known to be a Go program. Its calls are those of goroutines, and any of its threads
// sends or reads for any of them: threads that read replies are not its callers.
func IsGo(c *facts.Case, pid int) bool {
	s, _ := c.Rec.SnapshotOf(recording.SourceHost, processSubject(pid), recording.SnapshotRuntime)
	r, ok := recording.BodyOf[struct {
		Go string `json:"go"`
	}](s)
	return ok && r.Go != ""
}

// InterpreterLock is the runtime of a process that runs one thread at a time, "python" or "ruby"; empty where it is
// another one, or not known.
func InterpreterLock(c *facts.Case, pid int) string {
	for _, runtime := range []string{recording.ProfilePython, recording.ProfileRuby} {
		if strings.HasPrefix(CommOf(c, pid, ""), runtime) || strings.HasPrefix(Programs(c)[pid].Comm, runtime) {
			return runtime
		}
	}
	return facts.Once(c, "interpreters", readInterpreters)[pid] // "puma", which begins with #!/usr/bin/ruby
}

// readInterpreters are the runtimes of the processes whose stacks were read from the memory of an interpreter.
func readInterpreters(c *facts.Case) map[int]string {
	out := map[int]string{}
	for _, p := range c.Rec.Profiles {
		pid, err := strconv.Atoi(strings.TrimPrefix(p.Subject, recording.ProcessPrefix))
		if err == nil && isInterpreted(p.Kind) {
			out[pid] = p.Kind
		}
	}
	return out
}

// isInterpreted reports whether profiles of a kind are of stacks that an interpreter has in its memory.
func isInterpreted(kind string) bool {
	return kind == recording.ProfilePython || kind == recording.ProfileRuby
}

// LockName is what the lock of an interpreter is called.
func LockName(runtime string) string {
	if runtime == recording.ProfileRuby {
		return "Ruby's lock (GVL)"
	}
	return "Python's interpreter lock"
}

// ReportsCollections reports whether the tap sees when the runtime of a process collects garbage.
func ReportsCollections(c *facts.Case, pid int) bool {
	return len(c.ProcessSeries(pid, series.CollectorWatched)) > 0
}

// PIDOf is the id of the process in "redis-cli[1234]"; 0 where the text has none.
func PIDOf(client string) int {
	pid, _ := recording.PIDOf(client)
	return pid
}

// ProcessName is a process for a message: what it runs, or else the name that a source gave it, with its number.
func ProcessName(c *facts.Case, pid int, comm string) string {
	return fmt.Sprintf("%s[%d]", cmp.Or(Programs(c)[pid].Name, comm), pid)
}

// Programs are what processes run, by their number, as they were seen last.
func Programs(c *facts.Case) map[int]recording.Program {
	return facts.Once(c, "programs", func(c *facts.Case) map[int]recording.Program {
		out := map[int]recording.Program{}
		for s, p := range facts.Bodies[recording.Program](c.Rec, "", recording.SnapshotProgram,
			recording.ProcessPrefix) {
			if pid, err := strconv.Atoi(s.Subject); err == nil {
				out[pid] = p
			}
		}
		return out
	})
}
