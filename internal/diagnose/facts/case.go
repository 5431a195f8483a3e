package facts

import (
	"encoding/json"
	"slices"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Case is a recording with its accounts: what the causes judge.
type Case struct {
	// Rec is the recording.
	Rec *recording.Recording
	// Ledger is the accounts of its slow calls.
	Ledger *account.Ledger
	// StartNs and EndNs are the begin and the end of the watch, in nanoseconds since the Unix epoch.
	StartNs, EndNs int64
	// Nodes are the watched servers.
	Nodes []*Node
	// Applications are the programs that were profiled.
	Applications []*Application
	// Processes are the host source's snapshots of calling processes, in order of time.
	Processes []ProcessSnapshot
	// Programs are what calling processes run, by process id.
	Programs map[int]recording.Program
	// HostNames are the names of other hosts that call, by their addresses.
	HostNames map[string]string
	// unwatchedNs is the part of that in which nothing was watched, between two watches.
	unwatchedNs int64
	facts       found
}

// Node is one watched server of a case.
type Node struct {
	*Case
	// Address is its host and port.
	Address string
	// AllClients are the lines of all its snapshots of CLIENT LIST, slowpath's own connections included.
	AllClients []Client
	// Cgroup is where its limits are set.
	Cgroup Cgroup
	// ClusterViews are its cluster maps, in order of time.
	ClusterViews []ClusterView
	// InfoTexts are the texts of its INFO, in order of time.
	InfoTexts []InfoText

	config map[string]string // of CONFIG GET
	facts  found
}

// New computes the accounts of a recording, and decodes its snapshots.
func New(rec *recording.Recording) *Case {
	ledger := account.Build(rec)
	c := newCase(rec, ledger)
	c.addNodes(func(host *recording.Recording) *Case { return newCase(host, ledger) })
	return c
}

// newCase is without nodes.
func newCase(rec *recording.Recording, ledger *account.Ledger) *Case {
	c := &Case{
		Rec: rec, Ledger: ledger, Applications: applicationsOf(rec),
		Processes: processSnapshotsOf(rec), Programs: programsOf(rec), HostNames: hostNamesOf(rec),
	}
	c.StartNs, c.EndNs = rec.Window()
	c.unwatchedNs = c.EndNs - c.StartNs - rec.WatchedNs(c.StartNs, c.EndNs)
	return c
}

// addNodes adds the nodes of the recording. Where it is of several servers' hosts each node has the facts of its host,
// of has these, and the accounts of all.
func (c *Case) addNodes(of func(host *recording.Recording) *Case) {
	cases := map[*recording.Recording]*Case{c.Rec: c}
	for _, a := range c.Rec.Nodes() {
		host := c.Rec.HostOf(a)
		if cases[host] == nil {
			cases[host] = of(host)
		}
		c.Nodes = append(c.Nodes, newNode(cases[host], a))
	}
	for _, one := range cases {
		one.Nodes = c.Nodes
	}
}

// WithEarlier is the case as one that began when the time before it does of which the recording of an incident has what
// was changed: for that alone. Its accounts are those of the case.
func (c *Case) WithEarlier() *Case {
	if c.Rec.Earlier() == nil {
		return c
	}
	earlier := func(c *Case, rec *recording.Recording) *Case {
		out := &Case{Rec: rec, Ledger: c.Ledger, Applications: c.Applications, Processes: c.Processes}
		out.Programs, out.HostNames = programsOf(rec), hostNamesOf(rec)
		out.StartNs, out.EndNs = rec.Window()
		return out
	}
	out := earlier(c, c.Rec.WithEarlier())
	out.addNodes(func(host *recording.Recording) *Case {
		i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return out.Rec.HostOf(n.Address) == host })
		return earlier(c.Nodes[i].Case, host)
	})
	return out
}

func newNode(c *Case, address string) *Node {
	n := &Node{
		Case: c, Address: address, config: map[string]string{}, ClusterViews: clusterViewsOf(c.Rec, address),
		InfoTexts: infoTextsOf(c.Rec, address),
	}
	if s, ok := c.Rec.SnapshotOf(recording.SourceServer, address, "config"); ok {
		_ = json.Unmarshal([]byte(s.Body), &n.config) // a damaged snapshot is as good as none
	}
	if v, ok := n.Series(series.MaxMemory).Last(); ok && n.config["maxmemory"] != "" { // INFO is read more often
		n.config["maxmemory"] = strconv.FormatFloat(v, 'f', -1, 64)
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

// Seconds is the length of the watch.
func (c *Case) Seconds() float64 { return max(float64(c.EndNs-c.StartNs-c.unwatchedNs)/1e9, 1e-9) }

// CallSource is the source of the slow calls: the tap where it saw any, else the probe.
func (n *Node) CallSource() string {
	if n.Ledger.Users.Slow > 0 {
		return recording.SourceTap
	}
	return recording.SourceProbe
}

// Events are the events of a source and kind about this node.
func (n *Node) Events(source, kind string) []recording.Event {
	return n.Rec.EventsOf(source, n.Address, kind)
}
