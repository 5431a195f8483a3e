package facts

import (
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Bounds of churn. Health checks open a few connections per second; a pool that grows opens many that stay.
const (
	MinChurn          = 10.0  // connections per second that are closed again …
	minChurnShare     = 0.15  // … when they are this part of what callers wait for
	manyChurn         = 100.0 // connections per second that are a burden whatever else the server does …
	maxCommandsOfMany = 200.0 // … unless each is used for this many commands
	// commands that a caller is taken to send on a connection that it does not keep, where others send most
	fewCommands = 5.0
)

// Churn is the coming and going of connections, without slowpath's own.
type Churn struct {
	PerSecond       float64 // connections that were opened and closed again
	CommandsPerConn float64 // per such connection, all commands of the server counted
	OpeningNs       int64   // of a fresh connection before its first command
	CallNs          int64   // of a command on a kept connection
	TLS             bool
	// of the application on such a connection, the one in the middle, as the kernel source saw them; 0: not seen
	AppCallsPerConn float64
}

// Many: so many come and go that some callers must open one for each few commands, even if others keep theirs and send
// most.
func (c Churn) Many() bool {
	return c.PerSecond >= manyChurn && c.CommandsPerConn <= maxCommandsOfMany && c.AppCallsPerConn <= fewCommands
}

// Share is the part of their time that callers of such connections spend on opening them.
func (c Churn) Share() float64 {
	if c.PerSecond <= 0 {
		return 0
	}
	commands := max(c.CommandsPerConn, 1)
	if c.Many() {
		commands = min(commands, fewCommands)
	}
	return float64(c.OpeningNs) / (float64(c.OpeningNs) + commands*float64(c.CallNs))
}

// Matters: callers notice it, or the server does.
func (c Churn) Matters() bool {
	return c.PerSecond >= MinChurn && c.Share() >= minChurnShare || c.Many()
}

// MinClosed connections are worth a line of evidence.
const MinClosedConns = 10

// Churn counts connections that came and went. Those that stayed are a pool that grows.
func (n *Node) Churn() Churn {
	if n.churn == nil {
		c := n.findChurn()
		n.churn = &c
	}
	return *n.churn
}

func (n *Node) findChurn() Churn {
	received, connected := n.Info("total_connections_received"), n.Info("connected_clients")
	if len(received) < 2 {
		return Churn{}
	}
	from, to := received[0].TimeNs, received[len(received)-1].TimeNs
	seconds := max(float64(to-from)/1e9, 1e-9)
	own := n.ProbeCalls(from, to)
	stayed := 0.0
	if len(connected) > 0 {
		stayed = max(connected[len(connected)-1].Value-connected[0].Value, 0)
	}
	gone := received.Growth() - stayed - own.Fresh
	c := Churn{PerSecond: max(gone, 0) / seconds}
	commands := n.Growth("total_commands_processed") - 2*own.Fresh - own.Kept - ownPerPoll*n.Growth("self.polls")
	c.CommandsPerConn = max(commands, 0) / max(gone, 1)
	var closed []*Conn
	for _, caller := range n.Callers() {
		closed = append(closed, caller.ConnsWhere(func(k *Conn) bool { return k.OpenNs > 0 && k.CloseNs > 0 })...)
	}
	if len(closed) >= MinClosedConns {
		c.AppCallsPerConn = float64(PercentilesOf(closed, (*Conn).AppCalls).Median)
	}
	c.OpeningNs, c.CallNs, c.TLS = n.Prices()
	return c
}

// ownPerPoll is about how many commands a poll of the server source sends.
const ownPerPoll = 4

type ProbeCalls struct{ Fresh, Kept float64 }

// OwnCalls counts the probe's calls in a stretch of time: each fresh one is a connection that the server counts.
func (n *Node) ProbeCalls(from, to int64) (o ProbeCalls) {
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.StartNs < from || c.StartNs >= to {
			continue
		}
		if c.Conn == "fresh" {
			o.Fresh++
		} else {
			o.Kept++
		}
	}
	return o
}

// Where the probe made no fresh or no kept calls: a connection costs about one and a half commands on any path.
const (
	assumedPriceNs = int64(150_000)
	assumedCallNs  = int64(100_000)
)

// Prices are what the probe paid, in the median: for a connection (connect, TLS, and what its first reply took longer
// than one on an open connection: the server had to accept it) and for a command on an open one.
func (n *Node) Prices() (connectionNs, callNs int64, tls bool) {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	var opening []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" || c.Error != "" {
			continue
		}
		var ns int64
		for _, s := range n.Rec.Segments[c.ID] {
			switch s.State {
			case account.Dial:
				ns += s.ToNs - s.FromNs
			case account.TLS:
				ns += s.ToNs - s.FromNs
				tls = true
			case account.Handshake:
				ns += max(0, s.ToNs-s.FromNs-kept.P50Ns)
			}
		}
		opening = append(opening, ns)
	}
	if len(opening) == 0 || !ok || kept.P50Ns <= 0 {
		return assumedPriceNs, assumedCallNs, tls
	}
	sort.Slice(opening, func(i, j int) bool { return opening[i] < opening[j] })
	return opening[len(opening)/2], kept.P50Ns, tls
}
