package verdict

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// Caller is a process that calls the nodes, or, where only the servers' end was seen, a host. Servers, proxies among
// the nodes, and slowpath itself are none.
type Caller struct {
	// Name is the name of the program, or the address of the host.
	Name string `json:"name"`
	// HostName is the name of that host; empty where it is not known, and for programs.
	HostName string `json:"host_name,omitempty"`
	// Processes is how many of them were seen; 0 for a host. More than degree.Listed of a program are one Caller.
	Processes int `json:"processes,omitempty"`
	// PID is the id of the process; 0 for a host, and for several processes.
	PID int `json:"pid,omitempty"`
	// User, Unit, Container and Pod are for whom it runs, as in recording.Program.
	User      string `json:"user,omitempty"`
	Unit      string `json:"unit,omitempty"`
	Container string `json:"container,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Of Kubernetes; empty where they are not known.
	PodNamespace  string `json:"pod_namespace,omitempty"`
	PodName       string `json:"pod_name,omitempty"`
	ContainerName string `json:"container_name,omitempty"`
	Deployment    string `json:"deployment,omitempty"`
	// ClientNames are what its connections call themselves (CLIENT SETNAME), at most degree.Listed, with commas.
	ClientNames string `json:"client_names,omitempty"`
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
		c: c, byHost: map[string]*callerRow{}, byConn: map[string]*callerRow{}, byPID: map[int]*callerRow{},
	}
	t.slow(func(a *account.Account, pid int) {
		if pid == 0 {
			t.byConn[a.Call.Conn] = nil
		}
	})
	t.connections()
	t.slowCalls()
	var out []Caller
	for _, r := range t.rows() {
		r.Library = strings.Join(slices.Sorted(maps.Keys(r.libraries)), ", ")
		names := slices.Sorted(maps.Keys(r.names))
		r.ClientNames = strings.Join(names[:min(len(names), degree.Listed)], ", ")
		r.LostNs = int64(r.lostNs + 0.5)
		if r.Calls > 0 || r.SlowCalls > 0 {
			out = append(out, r.Caller)
		}
	}
	slices.SortFunc(out, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.PID, b.PID))
	})
	return out
}

// callerTable collects callers by process, or by host.
type callerTable struct {
	c      *facts.Case
	byHost map[string]*callerRow
	byConn map[string]*callerRow // of slow calls whose process is not known
	byPID  map[int]*callerRow
}

type callerRow struct {
	Caller
	libraries, names map[string]bool
	lostNs           float64
}

// row is that of a process, or of a host where there is none.
func (t *callerTable) row(name string, pid int) *callerRow {
	r := t.byHost[name]
	if pid > 0 {
		r = t.byPID[pid]
	}
	if r != nil {
		return r
	}
	r = &callerRow{Caller: Caller{Name: name, PID: pid}, libraries: map[string]bool{}, names: map[string]bool{}}
	if pid == 0 {
		r.HostName = caller.HostNames(t.c)[name]
		t.byHost[name] = r
		return r
	}
	p := hosts.Programs(t.c)[pid]
	r.Name, r.Processes = cmp.Or(p.Name, name), 1
	r.User, r.Unit, r.Container, r.Pod = p.User, p.Unit, p.Container, p.Pod
	r.PodNamespace, r.PodName, r.ContainerName, r.Deployment = p.PodNamespace, p.PodName, p.ContainerName, p.Deployment
	t.byPID[pid] = r
	return r
}

// rows are all; the processes of a program that has many, and that run for the same owner, are one.
func (t *callerTable) rows() []*callerRow {
	out := slices.Collect(maps.Values(t.byHost))
	programs := map[Caller][]*callerRow{}
	for _, r := range t.byPID {
		of := Caller{
			Name: r.Name, User: r.User, Unit: r.Unit, Container: r.Container, Pod: r.Pod,
			PodNamespace: r.PodNamespace, PodName: r.PodName, ContainerName: r.ContainerName, Deployment: r.Deployment,
		}
		programs[of] = append(programs[of], r)
	}
	for of, all := range programs {
		if len(all) <= degree.Listed {
			out = append(out, all...)
			continue
		}
		one := &callerRow{Caller: of, libraries: map[string]bool{}, names: map[string]bool{}}
		for _, r := range all {
			one.Processes++
			one.Calls, one.SlowCalls, one.lostNs = one.Calls+r.Calls, one.SlowCalls+r.SlowCalls, one.lostNs+r.lostNs
			maps.Copy(one.libraries, r.libraries)
			maps.Copy(one.names, r.names)
		}
		out = append(out, one)
	}
	return out
}

func (t *callerTable) connections() {
	for _, n := range t.c.Nodes {
		remote := caller.CallsFrom(n)
		libraries := caller.CallerLibraries(n)
		for _, by := range caller.ClientCallers(n) {
			if t.c.Ledger.IsProxyProcess(by.PID) {
				continue
			}
			name := by.Name
			if by.PID > 0 {
				name = by.Comm
			}
			r := t.row(name, by.PID)
			calls := by.AppCalls()
			if by.PID == 0 {
				calls = max(calls-remote[name], 0)
			}
			r.Calls += calls
			if library := libraries[by]; library != "" {
				r.libraries[library] = true
			}
			for _, name := range caller.ClientNames(n, by) {
				r.names[name] = true
			}
			for _, k := range by.Conns {
				if _, wanted := t.byConn[k.Client]; wanted {
					t.byConn[k.Client] = r
				}
			}
		}
		for host, calls := range remote {
			t.row(host, 0).Calls += calls
		}
	}
}

// slow are the calls of users that the tap recorded one by one. A call at a proxy among the nodes is its caller's.
func (t *callerTable) slow(visit func(a *account.Account, pid int)) {
	for i := range t.c.Ledger.Slow {
		a := &t.c.Ledger.Slow[i]
		if !a.IsPart() && a.Call.Source == recording.SourceTap {
			visit(a, hosts.PIDOf(a.Call.Client))
		}
	}
}

func (t *callerTable) slowCalls() {
	t.slow(func(a *account.Account, pid int) {
		name, _, _ := strings.Cut(a.Call.Client, "[")
		if t.c.Ledger.IsProxyProcess(pid) || caller.IsServerProcess(name) {
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
			r = t.row(caller.HostOf(a.Call.Conn), 0)
		}
		r.SlowCalls++
		r.lostNs += float64(a.ExcessNs) * a.Weight
	})
}
