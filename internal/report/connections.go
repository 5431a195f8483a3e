package report

import (
	"slices"
	"time"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// ConnectionsSchema names the JSON document of Connections (docs/json.md).
const ConnectionsSchema = "slowpath.connections/v1"

// Connections is how long connections were idle, and what came then: of each node, and by caller.
type Connections struct {
	Schema  string       `json:"schema"`
	Nodes   []IdleCaller `json:"nodes"`   // all callers of each together
	Callers []IdleCaller `json:"callers"` // those with most connections first
}

// IdleCaller is one caller of one node, or all of them.
type IdleCaller struct {
	Node        string    `json:"node"`
	Peer        string    `json:"peer"` // what the node is: server or proxy
	Caller      string    `json:"caller"`
	Connections int       `json:"connections"`
	UsesSeen    bool      `json:"uses_seen"` // else it is not known what was used again
	Idle        []IdleRow `json:"idle"`
	// Ranges are the idle times by what came then. Those of facts.UsedAgain are of a second or more.
	Ranges map[connection.Then]IdleRange `json:"ranges"`
	// Ends are the closed connections one by one, in order of time; only of callers, and where they were asked for.
	Ends []ConnectionEnd `json:"ends,omitempty"`
}

// IdleRow counts what came after an idle time of at least FromNs, and less than ToNs (0: no limit).
type IdleRow struct {
	FromNs int64                     `json:"from_ns"`
	ToNs   int64                     `json:"to_ns"`
	Then   map[connection.Then]int64 `json:"then"`
	// Redialled is for how many of those that were closed a call waited for a new connection.
	Redialled int64 `json:"redialled"`
}

// IdleRange is the idle times after which the same came. Times are in nanoseconds.
type IdleRange struct {
	Count int   `json:"count"`
	MinNs int64 `json:"min_ns"`
	P50Ns int64 `json:"p50_ns"`
	MaxNs int64 `json:"max_ns"`
	// Resets is how many were closed by a reset, SentInVain on how many the client sent something after that.
	Resets     int `json:"resets"`
	SentInVain int `json:"sent_in_vain"`
	// Behind is how many the proxy closed right after a server behind it had closed a connection of its own, by that
	// one: "haproxy[77] to 10.0.0.5:6379".
	Behind map[string]int `json:"behind,omitempty"`
	// Redialled is for how many a call waited for a new connection, and RedialP50Ns and RedialMaxNs how long.
	Redialled   int   `json:"redialled"`
	RedialP50Ns int64 `json:"redial_p50_ns"`
	RedialMaxNs int64 `json:"redial_max_ns"`

	// longMinNs is the least of the times of a second or more; 0: there is none
	longMinNs      int64
	idle, redialNs []int64
}

// ConnectionEnd is the end of one connection.
type ConnectionEnd struct {
	Time       time.Time       `json:"time"` // when it was closed, by the end that did so first
	Connection string          `json:"connection"`
	Then       connection.Then `json:"then"`
	Reason     string          `json:"reason"` // how: empty for FIN, or reset, timed-out, …
	IdleNs     int64           `json:"idle_ns"`
	AgeNs      int64           `json:"age_ns"` // 0: it was opened before the watch
	Calls      int64           `json:"calls"`
	CallsLost  int             `json:"calls_lost"` // that were sent on it and had no reply
	SentInVain bool            `json:"sent_in_vain"`
	NoticedNs  int64           `json:"noticed_ns"` // for how long the client's socket stayed open then
	// RedialAfterNs is from then to the dial of the connection that a call waited for instead, which took RedialNs; 0:
	// there was none. A client may dial before it closes the old one: below 0.
	RedialAfterNs int64 `json:"redial_after_ns"`
	RedialNs      int64 `json:"redial_ns"`
}

// idleSteps are the bounds between the rows. Usual limits are a second or more above or below one: 5, 10, 15, 30, 60
// s, 5, 10, 30 min, 1 h.
var idleSteps = []time.Duration{
	0, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	45 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour,
}

// ConnectionsOf sums up a recording; with each it lists the closed connections, too.
func ConnectionsOf(rec *recording.Recording, each bool) Connections {
	doc := Connections{Schema: ConnectionsSchema, Nodes: []IdleCaller{}, Callers: []IdleCaller{}}
	c := facts.New(rec)
	for _, n := range c.Nodes {
		all := newIdleCaller(n)
		callers := caller.Callers(n)
		for _, caller := range callers {
			one, times := newIdleCaller(n), connection.IdleTimesOf(caller, n.StartNs)
			one.Caller = caller.Name
			one.add(n, caller, times)
			all.add(n, caller, times)
			if each {
				one.Ends = endsOf(times)
			}
			one.finish()
			doc.Callers = append(doc.Callers, one)
		}
		if len(callers) > 0 {
			all.Caller = format.Count(len(callers), "caller")
			all.finish()
			doc.Nodes = append(doc.Nodes, all)
		}
	}
	slices.SortStableFunc(doc.Callers, func(a, b IdleCaller) int { return b.Connections - a.Connections })
	return doc
}

func newIdleCaller(n *facts.Node) IdleCaller {
	out := IdleCaller{
		Node: n.Address, Peer: "server", Idle: make([]IdleRow, len(idleSteps)), Ranges: map[connection.Then]IdleRange{},
	}
	if n.IsProxy() {
		out.Peer = "proxy"
	}
	for i, from := range idleSteps {
		out.Idle[i] = IdleRow{FromNs: int64(from), Then: map[connection.Then]int64{}}
		if i+1 < len(idleSteps) {
			out.Idle[i].ToNs = int64(idleSteps[i+1])
		}
	}
	return out
}

// add counts the idle times of a caller.
func (c *IdleCaller) add(n *facts.Node, caller *caller.Caller, t connection.IdleTimes) {
	c.Connections += len(caller.Conns)
	c.UsesSeen = c.UsesSeen || connection.UsesSeen(caller)
	if t.Busy > 0 {
		c.Idle[0].Then[connection.UsedAgain] += t.Busy
	}
	for _, k := range t.Idle {
		row := len(idleSteps) - 1
		for ; row > 0 && k.Ns < c.Idle[row].FromNs; row-- {
		}
		c.Idle[row].Then[k.Then]++
		if k.Redial != nil {
			c.Idle[row].Redialled++
		}
		r := c.Ranges[k.Then]
		r.add(n, k)
		c.Ranges[k.Then] = r
	}
}

func (r *IdleRange) add(n *facts.Node, k connection.IdleTime) {
	r.idle = append(r.idle, k.Ns)
	if k.Ns >= int64(degree.Long) && (r.longMinNs == 0 || k.Ns < r.longMinNs) {
		r.longMinNs = k.Ns
	}
	if k.Then == connection.UsedAgain {
		return
	}
	if k.Reason() == recording.CloseReset {
		r.Resets++
	}
	if b, ok := connection.ClosedBehind(n, k.AtNs); ok && k.Then == connection.ClosedByServer && n.IsProxy() {
		if r.Behind == nil {
			r.Behind = map[string]int{}
		}
		r.Behind[b.Caller+" to "+b.Node]++
	}
	if k.SentInVain() {
		r.SentInVain++
	}
	if k.Redial != nil {
		r.redialNs = append(r.redialNs, openingNs(k.Redial))
	}
}

func openingNs(k *caller.Conn) int64 {
	o := k.Opening()
	return o.ToNs - o.FromNs
}

// finish computes what needs all idle times.
func (c *IdleCaller) finish() {
	for then, r := range c.Ranges {
		r.Count, r.Redialled = len(r.idle), len(r.redialNs)
		r.P50Ns = facts.PercentilesOfNs(r.idle).Median // sorts them
		r.MinNs, r.MaxNs = r.idle[0], r.idle[r.Count-1]
		if r.Redialled > 0 {
			r.RedialP50Ns = facts.PercentilesOfNs(r.redialNs).Median
			r.RedialMaxNs = r.redialNs[r.Redialled-1]
		}
		c.Ranges[then] = r
	}
}

// endsOf are the ends of connections, in order of time.
func endsOf(t connection.IdleTimes) (out []ConnectionEnd) {
	for _, k := range t.Idle {
		if k.Then == connection.UsedAgain {
			continue
		}
		e := ConnectionEnd{
			Time: time.Unix(0, k.AtNs).UTC(), Connection: k.Client, Then: k.Then, Reason: k.Reason(), IdleNs: k.Ns,
			Calls: k.Calls, CallsLost: k.Lost(), SentInVain: k.SentInVain(),
		}
		if k.OpenNs > 0 {
			e.AgeNs = k.AtNs - k.OpenNs
		}
		if k.CloseNs > k.AtNs {
			e.NoticedNs = k.CloseNs - k.AtNs
		}
		if k.Redial != nil {
			e.RedialAfterNs, e.RedialNs = k.Redial.Opening().FromNs-k.AtNs, openingNs(k.Redial)
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b ConnectionEnd) int { return a.Time.Compare(b.Time) })
	return out
}
