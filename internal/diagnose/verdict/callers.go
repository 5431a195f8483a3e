package verdict

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Caller is a program that calls the nodes, or, where only the servers' end was seen, a host. Servers, proxies among
// the nodes, and slowpath itself are none.
type Caller struct {
	// Name is the name of the program, or the address of the host.
	Name string `json:"name"`
	// Processes is how many of them were seen; 0 for a host.
	Processes int `json:"processes,omitempty"`
	// Library is its client library with the version, where one is known, or several of several processes.
	Library string `json:"library,omitempty"`
	// Calls are all that were seen on its connections; 0 where these were not followed.
	Calls int64 `json:"calls"`
	// SlowCalls are those that were recorded one by one, and LostNs is their excess, in nanoseconds, each call by its
	// weight.
	SlowCalls int   `json:"slow_calls"`
	LostNs    int64 `json:"lost_ns"`
}

// callersOf are the callers of a case, those that lost most first.
func callersOf(c *facts.Case) []Caller {
	t := callerTable{
		c: c, byName: map[string]*callerRow{}, byConn: map[string]*callerRow{}, byPID: map[int]*callerRow{},
	}
	t.slow(func(a *account.Account, pid int) {
		if pid == 0 {
			t.byConn[a.Call.Conn] = nil
		}
	})
	t.connections()
	t.slowCalls()
	var out []Caller
	for _, r := range t.byName {
		r.Processes = len(r.pids)
		r.Library = strings.Join(slices.Sorted(maps.Keys(r.libraries)), ", ")
		r.LostNs = int64(r.lostNs + 0.5)
		if r.Calls > 0 || r.SlowCalls > 0 {
			out = append(out, r.Caller)
		}
	}
	slices.SortFunc(out, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// callerTable collects callers by the names of their programs: processes come and go.
type callerTable struct {
	c      *facts.Case
	byName map[string]*callerRow
	byConn map[string]*callerRow // of slow calls whose process is not known
	byPID  map[int]*callerRow
}

type callerRow struct {
	Caller
	pids      map[int]bool
	libraries map[string]bool
	lostNs    float64
}

func (t *callerTable) row(name string, pid int) *callerRow {
	r := t.byName[name]
	if r == nil {
		r = &callerRow{Caller: Caller{Name: name}, pids: map[int]bool{}, libraries: map[string]bool{}}
		t.byName[name] = r
	}
	if pid > 0 {
		r.pids[pid], t.byPID[pid] = true, r
	}
	return r
}

func (t *callerTable) connections() {
	for _, n := range t.c.Nodes {
		libraries := n.CallerLibraries()
		for _, caller := range n.ClientCallers() {
			if t.c.Ledger.IsProxyProcess(caller.PID) {
				continue
			}
			name := caller.Name
			if caller.PID > 0 {
				name = caller.Comm
			}
			r := t.row(name, caller.PID)
			r.Calls += caller.AppCalls()
			if library := libraries[caller]; library != "" {
				r.libraries[library] = true
			}
			for _, k := range caller.Conns {
				if _, wanted := t.byConn[k.Client]; wanted {
					t.byConn[k.Client] = r
				}
			}
		}
	}
}

// slow are the calls of users that the tap recorded one by one. A call at a proxy among the nodes is its caller's.
func (t *callerTable) slow(visit func(a *account.Account, pid int)) {
	for i := range t.c.Ledger.Slow {
		a := &t.c.Ledger.Slow[i]
		if !a.IsPart() && a.Call.Source == recording.SourceTap {
			visit(a, facts.PIDOf(a.Call.Client))
		}
	}
}

func (t *callerTable) slowCalls() {
	t.slow(func(a *account.Account, pid int) {
		name, _, _ := strings.Cut(a.Call.Client, "[")
		if t.c.Ledger.IsProxyProcess(pid) || facts.IsServerProcess(name) {
			return
		}
		r := t.byPID[pid]
		switch {
		case r == nil && pid > 0:
			r = t.row(name, pid)
		case r == nil:
			r = t.byConn[a.Call.Conn]
		}
		if r == nil {
			r = t.row(facts.HostOf(a.Call.Conn), 0)
		}
		r.SlowCalls++
		r.lostNs += float64(a.ExcessNs) * a.Weight
	})
}
