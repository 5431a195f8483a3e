package survey

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/source/server"
)

const (
	tickEvery = time.Second

	// A CLIENT LIST costs the server about 2 µs per client (internal/source/server). Together they may take this share
	// of the window. One is always sent, unless it alone would block the server for longer than maxListTime.
	listShare   = 0.002
	perClient   = 2 * time.Microsecond
	maxListTime = 20 * time.Millisecond
)

// countWindow counts refreshes for the window.
func (sv *surveyor) countWindow(ctx context.Context) {
	if sv.Window <= 0 {
		return
	}
	alive := sv.reachable()
	forEach(alive, func(n *node) {
		n.planLists(sv.Window)
		if reply, ok := n.do(context.WithoutCancel(ctx), "INFO"); ok {
			n.state.Begin = server.ParseInfo(reply.Text())
		}
	})
	queryCtx := context.WithoutCancel(ctx) // Ctrl-C ends the wait, but no command that was sent
	start := time.Now()
	total := int(sv.Window/tickEvery) + 1
	for k := range total {
		sv.Progress(fmt.Sprintf("counting refreshes of %s: %v of %v; Ctrl-C ends it early", format.Count(len(alive),
			"node"),
			(time.Duration(k) * tickEvery).Round(time.Second), sv.Window))
		if k > 0 && !sleepUntil(ctx, start.Add(min(time.Duration(k)*tickEvery, sv.Window))) {
			break
		}
		forEach(alive, func(n *node) { n.tick(queryCtx, k, total) })
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
func (n *node) planLists(window time.Duration) {
	clients := n.state.InfoFields.Numbers["connected_clients"]
	cost := time.Duration(clients) * perClient
	switch {
	case cost > maxListTime:
		n.state.addRefusal("CLIENT LIST", fmt.Sprintf("not sent: with %.0f clients it would block the server for "+
			"about %v",
			clients, cost.Round(time.Millisecond)))
	case cost == 0:
		n.clientLists = int(window/tickEvery) + 1
	default:
		n.clientLists = max(1, int(listShare*float64(window)/float64(cost)))
	}
}

// tick reads the counters, and at some ticks the list of clients: the lists are spread over the window.
func (n *node) tick(ctx context.Context, k, total int) {
	cmds := [][]string{{"INFO", "commandstats"}}
	list := n.clientLists > 0 && (k*n.clientLists/total != (k-1)*n.clientLists/total || k == 0) &&
		!n.state.refused("CLIENT LIST")
	if list {
		cmds = append(cmds, []string{"CLIENT", "LIST"})
	}
	if n.state.refused("INFO commandstats") {
		cmds = cmds[1:]
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
