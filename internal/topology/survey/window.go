package survey

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/source/server"
)

const (
	statsEvery = time.Second // INFO commandstats

	// Clients are listed at most so often: a refresh is seen if its connection has sent nothing else since.
	mostOften   = 100 * time.Millisecond
	perNode     = 10 * time.Millisecond // for each node more
	mostLists   = 600                   // in a window, which are kept
	leastOften  = time.Second
	perList     = 50 * time.Microsecond // what a list costs the server without clients: it wakes up
	perClient   = 2 * time.Microsecond  // and with each (internal/source/server)
	maxListTime = 20 * time.Millisecond

	// Together lists may take this share of the window. One is always sent, unless it alone would block the server for
	// longer than maxListTime.
	listShare = 0.002
)

// tickEvery is the time between two ticks.
func tickEvery(window time.Duration, nodes int) time.Duration {
	every := max(mostOften, time.Duration(nodes)*perNode, window/mostLists)
	if every > leastOften/2 {
		return leastOften
	}
	return every
}

// countWindow counts refreshes for the window.
func (sv *surveyor) countWindow(ctx context.Context) {
	if sv.Window <= 0 {
		return
	}
	alive := sv.reachable()
	every := tickEvery(sv.Window, len(alive))
	total := int(sv.Window/every) + 1
	forEach(alive, func(n *node) {
		n.planLists(sv.Window, total)
		if reply, ok := n.do(context.WithoutCancel(ctx), "INFO"); ok {
			n.state.Begin = server.ParseInfo(reply.Text())
		}
	})
	queryCtx := context.WithoutCancel(ctx) // Ctrl-C ends the wait, but no command that was sent
	start := time.Now()
	perStats := max(1, int(statsEvery/every))
	for k := range total {
		sv.Progress(fmt.Sprintf("counting refreshes of %s: %v of %v; Ctrl-C ends it early", format.Count(len(alive),
			"node"),
			(time.Duration(k) * every).Round(time.Second), sv.Window))
		if k > 0 && !sleepUntil(ctx, start.Add(min(time.Duration(k)*every, sv.Window))) {
			break
		}
		forEach(alive, func(n *node) { n.tick(queryCtx, k, total, k%perStats == 0 || k == total-1) })
	}
	forEach(alive, func(n *node) { n.end(queryCtx) })
	sv.survey.Window = time.Since(start)
}

func (sv *surveyor) reachable() (alive []*node) {
	for _, n := range sv.nodes {
		if n.session != nil && n.state.Answered() {
			alive = append(alive, n)
		}
	}
	return alive
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// planLists decides how often the clients are listed.
func (n *node) planLists(window time.Duration, ticks int) {
	clients := n.state.InfoFields.Numbers["connected_clients"]
	cost := perList + time.Duration(clients)*perClient
	switch {
	case cost > maxListTime:
		n.state.addRefusal("CLIENT LIST", fmt.Sprintf("not sent: with %.0f clients it would block the server for "+
			"about %v",
			clients, cost.Round(time.Millisecond)))
	default:
		n.clientLists = min(ticks, max(1, int(listShare*float64(window)/float64(cost))))
	}
}

// tick reads the counters once a second, and at some ticks the list of clients: the lists are spread over the window.
func (n *node) tick(ctx context.Context, k, total int, stats bool) {
	var cmds [][]string
	if stats && !n.state.refused("INFO commandstats") {
		cmds = append(cmds, []string{"INFO", "commandstats"})
	}
	list := n.clientLists > 0 && (k*n.clientLists/total != (k-1)*n.clientLists/total || k == 0) &&
		!n.state.refused("CLIENT LIST")
	if list {
		cmds = append(cmds, []string{"CLIENT", "LIST"})
	}
	if len(cmds) == 0 {
		return
	}
	replies, err := n.send(ctx, cmds...)
	if err != nil {
		return
	}
	t := Tick{At: time.Now()}
	if list {
		last := replies[len(replies)-1]
		if err := last.Err(); err != nil {
			n.state.addRefusal("CLIENT LIST", err.Error())
		} else {
			t.Clients, t.HasClients = otherClients(server.ParseClients(last.Text())), true
		}
	}
	if cmds[0][0] == "INFO" && replies[0].Err() == nil {
		t.Stats = server.ParseInfo(replies[0].Text())
	}
	n.state.Ticks = append(n.state.Ticks, t)
}

// otherClients leaves out replicas, links of masters, and slowpath itself.
func otherClients(clients []server.Client) []server.Client {
	var out []server.Client
	for _, c := range clients {
		if !c.Self && !hasAny(c.Flags, "SM") {
			out = append(out, c)
		}
	}
	return out
}

func hasAny(flags, letters string) bool {
	for _, l := range letters {
		for _, f := range flags {
			if f == l {
				return true
			}
		}
	}
	return false
}

// end reads the counters for the last time, and the refreshes in SLOWLOG.
func (n *node) end(ctx context.Context) {
	if reply, ok := n.do(ctx, "INFO"); ok {
		n.state.End = server.ParseInfo(reply.Text())
	}
	if reply, ok := n.do(ctx, "SLOWLOG", "GET", "128"); ok {
		n.state.SlowCalls = parseSlowCalls(reply)
	}
}
