package connection

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording/series"
)

// Bounds of churn. Health checks open a few connections per second; a pool that grows opens many that stay.
const (
	// MinChurn is the rate of connections that are opened and closed again, per second, from which they can matter.
	// Bound: guess.
	MinChurn = 10.0
	// minChurnShare is the least share of the callers' time that opening them must take.
	// Bound: guess.
	minChurnShare = 0.15
	// manyChurn is the rate per second that is a burden whatever else the server does …
	// Bound: guess.
	manyChurn = 100.0
	// … unless each connection is used for this many commands.
	// Bound: guess.
	maxCommandsOfMany = 200.0
	// fewCommands is what a caller is assumed to send on a connection that it does not keep, where others send most.
	// Bound: guess.
	fewCommands = 5.0
)

// Churn is connections that are opened and closed all the time, without slowpath's own.
type Churn struct {
	ConnectionCost
	// PerSecond is the rate of connections that were opened and closed again.
	PerSecond float64
	// CommandsPerConn is how many commands the server executed per such connection, all commands counted.
	CommandsPerConn float64
	// AppCallsPerConn is the median number of calls of the application on such a connection, as the tap saw
	// them; 0 where it did not.
	AppCallsPerConn float64
}

// Many reports whether so many come and go (manyChurn) that some callers must open one for each few commands
// (fewCommands), even if others keep theirs and send most.
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

// Matters reports whether callers notice it (MinChurn and minChurnShare), or the server does (Many).
func (c Churn) Matters() bool {
	return c.PerSecond >= MinChurn && c.Share() >= minChurnShare || c.Many()
}

// Noticed is LossNoticed of the churn.
func (c Churn) Noticed(n *facts.Node) bool {
	return n.LossNoticed(c.OpeningNs, c.PerSecond*float64(c.OpeningNs)*n.Seconds())
}

// MinClosedConns is the least number of closed connections that is worth a line of evidence.
// Bound: arithmetic, it decides what is listed.
const MinClosedConns = 10

// ChurnOf counts connections that were opened and closed again. Those that stayed are a pool that grows.
func ChurnOf(n *facts.Node) Churn { return facts.Once(n, "churn", findChurn) }

func findChurn(n *facts.Node) Churn {
	received, connected := n.Series(series.TotalConnectionsReceived), n.Series(series.ConnectedClients)
	if len(received) < 2 {
		return Churn{}
	}
	from, to := received[0].TimeNs, received[len(received)-1].TimeNs
	seconds := max(float64(to-from)/1e9, 1e-9)
	own := ProbeCallsOf(n, from, to)
	stayed := 0.0
	if len(connected) > 0 {
		stayed = max(connected[len(connected)-1].Value-connected[0].Value, 0)
	}
	gone := received.Growth() - stayed - own.Fresh
	c := Churn{PerSecond: max(gone, 0) / seconds}
	commands := n.Growth(series.TotalCommandsProcessed) - 2*own.Fresh - own.Kept -
		commandsPerPoll*n.Growth(series.OwnPolls)
	c.CommandsPerConn = max(commands, 0) / max(gone, 1)
	var closed []*caller.Conn
	for _, by := range caller.Callers(n) {
		closed = append(closed, by.ConnsWhere(func(k *caller.Conn) bool { return k.OpenNs > 0 && k.CloseNs > 0 })...)
	}
	if len(closed) >= MinClosedConns {
		c.AppCallsPerConn = float64(caller.PercentilesOf(closed, (*caller.Conn).AppCalls).Median)
	}
	c.ConnectionCost = ConnectionCostOf(n)
	return c
}
