package facts

import (
	"bufio"
	"encoding/json"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Case is a recording with its accounts: what causes judge.
type Case struct {
	Rec            *recording.Recording
	Ledger         *account.Ledger
	StartNs, EndNs int64
	Nodes          []*Node
	Applications   []*Application // that were profiled
	Processes      []ProcessSnapshot
	threads        map[int]*Threads
	overhead       *Overhead // see LostTimeOfAll
}

// Node is one watched server within a case.
type Node struct {
	*Case
	Address       string
	config        map[string]string
	AllClients    []Client
	Cgroup        Cgroup
	tlsHandshakes *TLSHandshakes
	ClusterViews  []ClusterView
	InfoTexts     []InfoText
	callers       []*Caller
	churn         *Churn
}

// Client is a line of the snapshot "clients" (CLIENT LIST without what could hold users' data).
type Client struct {
	ID      int64  `json:"id"`
	Addr    string `json:"addr"`
	Name    string `json:"name"`
	Age     int64  `json:"age"`  // seconds
	Idle    int64  `json:"idle"` // seconds
	Flags   string `json:"flags"`
	Cmd     string `json:"cmd"`
	Qbuf    int64  `json:"qbuf"`
	OMem    int64  `json:"omem"`
	LibName string `json:"lib_name"`
	LibVer  string `json:"lib_ver"`
	Self    bool   `json:"self"` // a connection of slowpath
}

// Cgroup is the snapshot "cgroup": where the server's limits are set.
type Cgroup struct {
	Version int    `json:"version"`
	CPUPath string `json:"cpu_path"`
	Levels  []struct {
		Path     string `json:"path"`
		QuotaUs  int64  `json:"quota_us"`
		PeriodUs int64  `json:"period_us"`
	} `json:"levels"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Unit      string `json:"unit"`
}

func New(rec *recording.Recording) *Case {
	c := &Case{
		Rec: rec, Ledger: account.Build(rec), Applications: applicationsOf(rec),
		Processes: processSnapshotsOf(rec),
	}
	c.StartNs, c.EndNs = rec.Window()
	for _, a := range rec.Nodes() {
		c.Nodes = append(c.Nodes, newNode(c, a))
	}
	return c
}

func newNode(c *Case, address string) *Node {
	n := &Node{
		Case: c, Address: address, config: map[string]string{}, ClusterViews: clusterViewsOf(c.Rec, address),
		InfoTexts: infoTextsOf(c.Rec, address),
	}
	if s, ok := c.Rec.SnapshotOf(recording.SourceServer, address, "config"); ok {
		_ = json.Unmarshal([]byte(s.Body), &n.config) // a damaged snapshot is as good as none
	}
	if s, ok := c.Rec.SnapshotOf(recording.SourceHost, address, "cgroup"); ok {
		_ = json.Unmarshal([]byte(s.Body), &n.Cgroup)
	}
	for _, s := range c.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == address && s.Name == "clients" {
			n.AllClients = append(n.AllClients, ParseClients(s.Body)...)
		}
	}
	return n
}

func ParseClients(body string) []Client {
	var out []Client
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var cl Client
		if json.Unmarshal(sc.Bytes(), &cl) == nil {
			out = append(out, cl)
		}
	}
	return out
}

// Seconds is the length of the watch.
func (c *Case) Seconds() float64 { return max(float64(c.EndNs-c.StartNs)/1e9, 1e-9) }

// Info is the series of an INFO field.
func (n *Node) Info(field string) recording.Series {
	return n.Rec.Series(recording.SourceServer, n.Address, field)
}

// Host is a series about the server's process, from the files of its host.
func (n *Node) Host(name string) recording.Series {
	return n.Rec.Series(recording.SourceHost, n.Address, name)
}

// Machine is a series about the whole host.
func (n *Node) Machine(name string) recording.Series {
	return n.Rec.Series(recording.SourceHost, recording.SubjectMachine, name)
}

// Hosted reports whether the server's main thread was watched through the files of its host.
func (n *Node) HostWatched() bool { return len(n.Host("main.run_ns")) > 0 }

// Exact is what the kernel source saw of the server's main thread in a state, wait by wait; nil where it did not see
// the thread.
func (n *Node) Exact(state string) []account.Segment {
	var out []account.Segment
	for _, s := range n.Ledger.Exact(n.Address) {
		if s.State == state {
			out = append(out, s)
		}
	}
	return out
}

// SeenExactly reports whether the kernel source saw the server's main thread.
func (n *Node) SeenExactly() bool { return n.Ledger.Exact(n.Address) != nil }

// Waits is some waits of a thread taken together.
type WaitSum struct {
	Count     int
	Ns, MaxNs int64
}

func SumWaits(segs []account.Segment) (w WaitSum) {
	for _, s := range segs {
		w.Count++
		w.Ns += s.Ns()
		w.MaxNs = max(w.MaxNs, s.Ns())
	}
	return w
}

// StateSource is the best source that saw what the server's main thread was doing.
func (n *Node) StateSource() string {
	switch {
	case n.SeenExactly():
		return recording.SourceTap
	case n.HostWatched():
		return recording.SourceHost
	}
	return recording.SourceServer
}

// CallSource is the source of the slow calls: the users' own where the kernel source saw any.
func (n *Node) CallSource() string {
	if n.Ledger.Users.Slow > 0 {
		return recording.SourceTap
	}
	return recording.SourceProbe
}

// Config is a parameter of CONFIG GET; ok is false where it was forbidden or does not exist.
func (n *Node) Config(name string) (value string, ok bool) {
	value, ok = n.config[name]
	return value, ok
}

// Clients are all lines of CLIENT LIST that the watch kept, without slowpath's own connections.
func (n *Node) Clients() []Client {
	var out []Client
	for _, c := range n.AllClients {
		if !c.Self {
			out = append(out, c)
		}
	}
	return out
}

// Growth is by how much a counter of INFO rose during the watch.
func (n *Node) Growth(field string) float64 { return n.Info(field).Growth() }

// PerSecond is the rate of a counter of INFO over the watch.
func (n *Node) PerSecond(field string) float64 {
	s := n.Info(field)
	if len(s) < 2 {
		return 0
	}
	return s.Growth() / max(float64(s[len(s)-1].TimeNs-s[0].TimeNs)/1e9, 1e-9)
}

// Events are the events of a source and kind about this node.
func (n *Node) Events(source, kind string) []recording.Event {
	return n.Rec.EventsOf(source, n.Address, kind)
}

// StateNs adds up the time that the host source saw the main thread in a state during the watch, slow calls or not.
func (n *Node) StateNs(kind string) int64 {
	var ns int64
	for _, e := range n.Events(recording.SourceHost, kind) {
		share := recording.DetailOf[recording.ThreadDetail](e).Share
		if share <= 0 || share > 1 {
			share = 1
		}
		ns += int64(float64(e.DurationNs) * share)
	}
	return ns
}

// MainCores is the CPU time that the main thread used per second, 0..1: by the host's schedstat where it was watched,
// else by INFO (used_cpu_*_main_thread since 6.2, before that of the whole process). ok is false where neither is
// known.
func (n *Node) MainCores() (cores float64, source string, ok bool) {
	if s := n.Host("main.run_ns"); len(s) >= 2 {
		return Rate(s) / 1e9, recording.SourceHost, true
	}
	for _, f := range [][2]string{
		{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"},
		{"used_cpu_user", "used_cpu_sys"},
	} {
		u, s := n.Info(f[0]), n.Info(f[1])
		if len(u) >= 2 && len(s) >= 2 {
			return min(Rate(u)+Rate(s), 1), recording.SourceServer, true
		}
	}
	return 0, "", false
}

// Rate is the growth of a counter per second between its first and last point.
func Rate(s recording.Series) float64 {
	if len(s) < 2 {
		return 0
	}
	return s.Growth() / max(float64(s[len(s)-1].TimeNs-s[0].TimeNs)/1e9, 1e-9)
}

// CommandsPerSecond is the server's own rate of commands.
func (n *Node) CommandsPerSecond() float64 { return n.PerSecond("total_commands_processed") }

func LastValue(s recording.Series) float64 {
	v, _ := s.Last()
	return v
}
