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
	// unwatchedNs is the part of that in which nothing was watched, between two watches.
	unwatchedNs int64
	facts       found
}

// Node is one watched server of a case.
type Node struct {
	*Case
	// Address is its host and port.
	Address string
	// InfoTexts are the texts of its INFO, in order of time.
	InfoTexts []InfoText

	config map[string]string // of CONFIG GET
	facts  found
}

// New computes the accounts of a recording, and decodes its snapshots.
func New(rec *recording.Recording) *Case { return newCases(rec, account.Build(rec)) }

// newCases is the case of a recording. Where it is of several servers' hosts each node has the facts of its host, and
// the accounts of all.
func newCases(rec *recording.Recording, ledger *account.Ledger) *Case {
	c := newCase(rec, ledger)
	cases := map[*recording.Recording]*Case{rec: c}
	for _, a := range rec.Nodes() {
		host := rec.HostOf(a)
		if cases[host] == nil {
			cases[host] = newCase(host, ledger)
		}
		c.Nodes = append(c.Nodes, newNode(cases[host], a))
	}
	for _, one := range cases {
		one.Nodes = c.Nodes
	}
	return c
}

// newCase is without nodes.
func newCase(rec *recording.Recording, ledger *account.Ledger) *Case {
	c := &Case{Rec: rec, Ledger: ledger}
	c.StartNs, c.EndNs = rec.Window()
	c.unwatchedNs = c.EndNs - c.StartNs - rec.WatchedNs(c.StartNs, c.EndNs)
	return c
}

// WithEarlier is the case as one that began when the time before it does of which the recording of an incident has what
// was changed: for that alone. Its accounts are those of the case.
func (c *Case) WithEarlier() *Case {
	if c.Rec.Earlier() == nil {
		return c
	}
	return newCases(c.Rec.WithEarlier(), c.Ledger)
}

func newNode(c *Case, address string) *Node {
	n := &Node{
		Case: c, Address: address, config: map[string]string{}, InfoTexts: infoTextsOf(c.Rec, address),
	}
	if s, ok := c.Rec.SnapshotOf(recording.SourceServer, address, "config"); ok {
		_ = json.Unmarshal([]byte(s.Body), &n.config) // a damaged snapshot is as good as none
	}
	if v, ok := n.Series(series.MaxMemory).Last(); ok && n.config["maxmemory"] != "" { // INFO is read more often
		n.config["maxmemory"] = strconv.FormatFloat(v, 'f', -1, 64)
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

// IsProxy reports whether a proxy answers at the node's address: the watch of one found it, or its process was seen to
// pass calls on.
func (n *Node) IsProxy() bool {
	meta := n.Rec.Meta
	if meta[recording.MetaKind] == "proxy" && (len(n.Nodes) == 1 || meta[recording.MetaTarget] == n.Address) {
		return true
	}
	return slices.ContainsFunc(n.Rec.Calls, func(c recording.Call) bool {
		return c.Node == n.Address && slices.ContainsFunc(n.Rec.SegmentsOf(c.ID),
			func(s recording.Segment) bool { return s.Actor == recording.Proxy })
	})
}
