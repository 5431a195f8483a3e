package connection

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording/series"
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
	// Greets says that most of them sent HELLO, AUTH or CLIENT SETINFO first, where the tap did not see how long that
	// took: OpeningNs has the round trip that it takes at least.
	Greets bool
}

// manyChurn is the rate of connections per second from which some callers must open one for each few commands, unless
// the server executes as many for each of them.
// Bound: guess, a histogram of the calls of connections of many recordings with the tap would measure it.
const manyChurn = 100

func (c Churn) many() bool {
	return c.PerSecond >= manyChurn && c.CommandsPerConn <= manyChurn && c.AppCallsPerConn <= degree.Many
}

// Share is the part of their time that callers of such connections spend on opening them.
func (c Churn) Share() float64 {
	if c.PerSecond <= 0 || c.OpeningNs <= 0 {
		return 0
	}
	commands := c.CommandsPerConn
	switch { // others may keep their connections, and send most
	case c.AppCallsPerConn > 0:
		commands = min(commands, c.AppCallsPerConn)
	case c.many():
		commands = min(commands, degree.Many)
	}
	return float64(c.OpeningNs) / (float64(c.OpeningNs) + max(commands, 1)*float64(c.CallNs))
}

// Matters reports whether callers can notice it, or the server: health checks open a few connections per second.
func (c Churn) Matters() bool {
	return c.PerSecond >= degree.Many && c.Share() >= degree.Part || c.many()
}

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
	commands := n.Growth(series.TotalCommandsProcessed) - CommandsPerFresh*own.Fresh - own.Kept
	c.CommandsPerConn = max(commands, 0) / max(gone, 1)
	var closed []*caller.Conn
	for _, by := range caller.Callers(n) {
		closed = append(closed, by.ConnsWhere(func(k *caller.Conn) bool { return k.OpenNs > 0 && k.CloseNs > 0 })...)
	}
	if len(closed) >= degree.Many {
		c.AppCallsPerConn = float64(caller.PercentilesOf(closed, (*caller.Conn).AppCalls).Median)
	}
	c.ConnectionCost = ConnectionCostOf(n)
	greetings := max(n.Growth(series.CommandCalls("hello"))-own.Fresh, n.Growth(series.CommandCalls("auth")),
		n.Growth(series.CommandCalls("client|setinfo")))
	if c.Greets = len(closed) == 0 && gone > 0 && greetings >= degree.Most*gone; c.Greets {
		c.OpeningNs += c.CallNs
	}
	return c
}
