package survey

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/source/server"
)

const (
	tickEvery = time.Second

	// A CLIENT LIST costs the server about 2 µs per client (internal/source/server); all of a window together are kept
	// below this share of it. One is always taken, unless it alone would hold up the server for longer than dearList.
	listShare = 0.002
	perClient = 2 * time.Microsecond
	dearList  = 20 * time.Millisecond
)

// watch counts for the window.
func (sv *surveyor) watch(ctx context.Context) {
	if sv.Window <= 0 {
		return
	}
	alive := sv.alive()
	each(alive, func(n *node) {
		n.planLists(sv.Window)
		if reply, ok := n.do(context.WithoutCancel(ctx), "INFO"); ok {
			n.look.Begin = server.ParseInfo(reply.Text())
		}
	})
	patient := context.WithoutCancel(ctx) // Ctrl-C ends the wait, and not a question that was asked
	start := time.Now()
	total := int(sv.Window/tickEvery) + 1
	for k := range total {
		sv.Progress(fmt.Sprintf("counting refreshes of %d nodes: %v of %v; Ctrl-C ends it early", len(alive),
			(time.Duration(k) * tickEvery).Round(time.Second), sv.Window))
		if k > 0 && !sleepUntil(ctx, start.Add(min(time.Duration(k)*tickEvery, sv.Window))) {
			break
		}
		each(alive, func(n *node) { n.tick(patient, k, total) })
	}
	each(alive, func(n *node) { n.end(patient) })
	sv.survey.Window = time.Since(start)
}

func (sv *surveyor) alive() (alive []*node) {
	for _, n := range sv.nodes {
		if n.session != nil && n.look.Answered() {
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

// planLists decides at how many ticks the clients are listed.
func (n *node) planLists(window time.Duration) {
	clients := n.look.Fields.Numbers["connected_clients"]
	cost := time.Duration(clients) * perClient
	switch {
	case cost > dearList:
		n.look.fails("CLIENT LIST", fmt.Sprintf("not asked: with %.0f clients it would hold up the server for some %v",
			clients, cost.Round(time.Millisecond)))
	case cost == 0:
		n.lists = int(window/tickEvery) + 1
	default:
		n.lists = max(1, int(listShare*float64(window)/float64(cost)))
	}
}

// tick takes the counters, and the clients where it is their turn: the lists are spread over the window.
func (n *node) tick(ctx context.Context, k, total int) {
	cmds := [][]string{{"INFO", "commandstats"}}
	list := n.lists > 0 && (k*n.lists/total != (k-1)*n.lists/total || k == 0) && !n.look.refused("CLIENT LIST")
	if list {
		cmds = append(cmds, []string{"CLIENT", "LIST"})
	}
	if n.look.refused("INFO commandstats") {
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
			n.look.fails("CLIENT LIST", err.Error())
		} else {
			t.Clients, t.HasClients = others(server.ParseClients(last.Text())), true
		}
	}
	if cmds[0][0] == "INFO" && replies[0].Err() == nil {
		t.Stats = server.ParseInfo(replies[0].Text())
	}
	n.look.Ticks = append(n.look.Ticks, t)
}

// others are the clients that are neither replicas, nor links of masters, nor slowpath.
func others(clients []server.Client) []server.Client {
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

// end takes the counters for the last time, and what SLOWLOG has of refreshes.
func (n *node) end(ctx context.Context) {
	if reply, ok := n.do(ctx, "INFO"); ok {
		n.look.End = server.ParseInfo(reply.Text())
	}
	if reply, ok := n.do(ctx, "SLOWLOG", "GET", "128"); ok {
		n.look.Slow = parseSlowCalls(reply)
	}
}
