package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"slowpath/internal/recording"
)

// extras is the state of the commands that are not sent at each poll.
type extras struct {
	stale []string // LATENCY events to read

	clientsAt int64 // time of the last CLIENT LIST
	settings  map[string]string
	config    string // settings as they were recorded
	set       bool   // settings may have changed since config was read
	asked     int    // commands of slowpath's own CONFIG GET since the last INFO
	nodesOf   string // what CLUSTER INFO said when CLUSTER NODES was read last
	memory    bool   // MEMORY STATS was read
}

const (
	clientsEvery = 10 * time.Second
	// What commands cost where it was not measured yet, on a core of 2026. Measured: CLIENT LIST 1.4-1.9 µs per
	// client (5.0 to 8.1); CLUSTER NODES 9.2 µs per node up to 6.0, 0.4 µs since; CONFIG GET 7-18 µs
	// per pattern; MEMORY STATS up to 0.3 ms.
	perClient     = 2 * time.Microsecond
	perNodeBefore = 14 * time.Microsecond
	perNode       = 1500 * time.Nanosecond
	perPattern    = 20 * time.Microsecond
	memoryStats   = 300 * time.Microsecond
)

// more sends the commands that the last poll asks for, as far as the budget allows. An error ends it: the connection is
// closed, and that was recorded.
func (w *watch) more(ctx context.Context, last bool) {
	for _, ask := range []func(context.Context, bool) error{
		func(ctx context.Context, _ bool) error { return w.fetchLogs(ctx) },
		w.fetchLatency, w.askConfig, w.askClients, w.askNodes, w.askMemory, w.askSlots,
	} {
		if err := ask(ctx, last); err != nil {
			return
		}
	}
}

// askConfig reads the settings once, when they may have changed, and at the end.
func (w *watch) askConfig(ctx context.Context, last bool) error {
	cmds := configCommands()
	cost := max(w.cost.of(cmds), time.Duration(len(cmds))*perPattern)
	read := w.extras.config != "" && !w.extras.set && !last
	if read || !w.refusals.allows("CONFIG GET") || !w.budget.take(w.Clock.Now(), cost) {
		return nil
	}
	replies, at, err := w.ask(ctx, cmds)
	if err != nil {
		return err
	}
	w.extras.set, w.extras.asked = false, len(cmds)
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	settings := map[string]string{}
	for _, v := range replies {
		if err := v.Err(); err != nil {
			w.refusals.check("CONFIG GET", err)
			return nil
		}
		readConfig(settings, v)
	}
	w.extras.settings = settings
	w.reportDisabled(settings)
	if body := jsonObject(settings); body != w.extras.config {
		w.extras.config = body
		w.snapshot(at.done, SnapshotConfig, body)
	}
	return nil
}

// offers reports whether the server may have what a setting is about. One that does not show its settings is asked,
// once.
func (w *watch) offers(setting string) bool {
	_, has := w.extras.settings[setting]
	return has || !w.refusals.allows("CONFIG GET")
}

// reportDisabled makes blind spots of what the server could record and does not. slowpath changes no setting: the user
// has to.
func (w *watch) reportDisabled(settings map[string]string) {
	if settings["latency-monitor-threshold"] == "0" {
		w.refusals.reportOnce("LATENCY off", recording.BlindSpot{
			What:   spots["LATENCY"],
			Why:    "latency-monitor-threshold is 0: the server records none",
			Enable: "CONFIG SET latency-monitor-threshold 10",
		})
	}
	if settings["cluster-slot-stats-enabled"] == "no" && w.in.numbers["cluster_enabled"] == 1 {
		w.refusals.reportOnce("slot statistics off", recording.BlindSpot{
			What:   spots["CLUSTER SLOT-STATS"],
			Why:    "cluster-slot-stats-enabled is no: the server counts none",
			Enable: "CONFIG SET cluster-slot-stats-enabled yes",
		})
	}
	if n, err := strconv.Atoi(settings["slowlog-log-slower-than"]); err == nil && n < 0 ||
		settings["slowlog-max-len"] == "0" {
		w.refusals.reportOnce("SLOWLOG off", recording.BlindSpot{
			What:   spots["SLOWLOG GET"],
			Why:    "slowlog-log-slower-than or slowlog-max-len turns it off",
			Enable: "CONFIG SET slowlog-log-slower-than 10000, CONFIG SET slowlog-max-len 128",
		})
	}
}

// askClients reads CLIENT LIST at the start, every ten seconds and at the end, where the number of clients allows.
func (w *watch) askClients(ctx context.Context, last bool) error {
	now, n := w.Clock.Now(), w.in.numbers["connected_clients"]
	cost := time.Duration(n) * perClient
	switch {
	case !w.refusals.allows("CLIENT LIST"), w.in.numbers == nil:
		return nil
	case w.budget.never(cost):
		w.refusals.skip("CLIENT LIST", fmt.Sprintf("with %.0f clients one CLIENT LIST would hold up the server for "+
			"some %v", n, cost.Round(time.Millisecond)),
			"a larger budget for the server's time, or CLIENT LIST by hand at a quiet time")
		return nil
	case w.extras.clientsAt != 0 && !last && now-w.extras.clientsAt < int64(clientsEvery), !w.budget.take(now, cost):
		return nil
	}
	cmds := [][]string{{"CLIENT", "LIST"}}
	replies, at, err := w.ask(ctx, cmds)
	if err != nil {
		return err
	}
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	w.extras.clientsAt = at.done
	if err := replies[0].Err(); err != nil {
		w.refusals.check("CLIENT LIST", err)
		return nil
	}
	clients := ParseClients(replies[0].Text())
	if w.Listed != nil {
		w.Listed(clients)
	}
	w.snapshot(at.done, SnapshotClients, clientLines(clients))
	w.snapshot(at.done, SnapshotClientCounts, recording.Detail(countClients(clients)))
	return nil
}

const maxNodesBytes = 1 << 20

// askNodes reads the topology of a cluster once, and again when CLUSTER INFO shows that it has changed.
func (w *watch) askNodes(ctx context.Context, _ bool) error {
	in := w.in
	nodes, known := in.numbers["cluster_known_nodes"]
	key := fmt.Sprint(nodes, in.numbers["cluster_size"], in.numbers["cluster_current_epoch"],
		in.numbers["cluster_my_epoch"], in.text["cluster_state"])
	cost := time.Duration(nodes) * perNodeBefore
	if _, since62 := in.numbers["total_forks"]; since62 {
		cost = time.Duration(nodes) * perNode
	}
	switch {
	case !known, !w.refusals.allows("CLUSTER NODES"), key == w.extras.nodesOf:
		return nil
	case w.budget.never(cost):
		w.refusals.skip("CLUSTER NODES", fmt.Sprintf("with %.0f nodes one CLUSTER NODES would hold up this server "+
			"for some %v", nodes, cost.Round(time.Millisecond)),
			"a server from 6.2 on, where it is cheap")
		return nil
	case !w.budget.take(w.Clock.Now(), cost):
		return nil
	}
	cmds := [][]string{{"CLUSTER", "NODES"}}
	replies, at, err := w.ask(ctx, cmds)
	if err != nil {
		return err
	}
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	w.extras.nodesOf = key
	if err := replies[0].Err(); err != nil {
		w.refusals.check("CLUSTER NODES", err)
		return nil
	}
	text := replies[0].Text()
	w.snapshot(at.done, SnapshotClusterNodes, text[:min(len(text), maxNodesBytes)])
	return nil
}

// askMemory reads MEMORY STATS once. Its refusal hides little: INFO has most of it.
func (w *watch) askMemory(ctx context.Context, _ bool) error {
	// In 5.0 it walks all clients.
	cost := memoryStats + time.Duration(w.in.numbers["connected_clients"])*perClient/10
	if w.extras.memory || w.in.numbers == nil || !w.budget.take(w.Clock.Now(), cost) {
		return nil
	}
	cmds := [][]string{{"MEMORY", "STATS"}}
	replies, at, err := w.ask(ctx, cmds)
	if err != nil {
		return err
	}
	w.cost.used(cmds, time.Duration(at.done-at.sent))
	w.extras.memory = true
	if replies[0].Err() != nil {
		return nil
	}
	stats := map[string]float64{}
	flatten(stats, "", replies[0], 0)
	w.snapshot(at.done, SnapshotMemory, jsonObject(stats))
	return nil
}
