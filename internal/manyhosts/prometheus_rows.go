package manyhosts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// addNumbers makes rows of what agents counted.
func (f *Folder) addNumbers(ctx context.Context, n *numbers) error {
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	named := n.namedCallers()
	for _, a := range n.sorted() {
		if err := ctx.Err(); err != nil {
			return err
		}
		all, o := rows{}, origin{cluster: a.cluster(), host: a.host}
		if ip, err := netip.ParseAddr(a.host); err == nil && !ip.IsLoopback() {
			all.add("address_row", o.cluster, o.host, ip.Unmap().String())
		}
		all.counted(o, n, a)
		all.incidents(o, n, a)
		all.callers(o, n, a, named)
		if err := all.insert(tx, 0); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return f.nameNodes()
}

// sorted are the agents in an order that is always the same.
func (n *numbers) sorted() (all []*scraped) {
	for _, key := range slices.Sorted(maps.Keys(n.agents)) {
		all = append(all, n.agents[key])
	}
	return all
}

// counted adds the calls to each node. The histogram of all steps is that of the last one with calls.
func (r rows) counted(o origin, n *numbers, a *scraped) {
	for _, node := range a.nodes() {
		of := func(metric string) []float64 { return n.added(a, a.series[measure{metric: metric, node: node}]) }
		calls, slow, failed := of(callsTotal), of(slowTotal), of(failedTotal)
		name, side := o.node(node), recording.Client
		if name != node || a.series[measure{metric: atServer, node: node}] != nil {
			side = recording.Server
		}
		buckets := a.bucketsOf(node)
		for i := n.points - 1; i > 0; i-- {
			if calls[i]+failed[i] == 0 {
				continue
			}
			r.add("minute_row", o.cluster, o.host, n.at(i-1).UnixNano(), name, "users", side, "", int64(calls[i]),
				int64(slow[i]), int64(failed[i]), 0, 0, false, jsonOf(buckets))
			buckets = [][2]float64{}
		}
	}
}

// incidents adds those that were judged in each step, and the node where the agent sees one alone.
func (r rows) incidents(o origin, n *numbers, a *scraped) {
	nodes := a.nodes()
	if len(nodes) > 1 {
		nodes = nil
	}
	for m, values := range a.series {
		if m.metric != incidentTotal {
			continue
		}
		for i, judged := range n.added(a, values) {
			for k := range int(min(judged, maxIncidents)) {
				at := n.at(i - 1).UnixNano()
				id := fmt.Sprintf("%d %s %s %d", at, m.cause, m.verdict, k)
				r.add("incident_row", o.cluster, o.host, id, at, int64(n.step), "judged", m.verdict, m.cause, "", 0, 0,
					o.nodes(nodes), "[]")
			}
		}
	}
}

// callers adds a row for each step in which calls of a caller were slow, with its calls since the row before, and one
// for the last step. The metrics do not say which node it called: it is known where the agent sees one alone.
func (r rows) callers(o origin, n *numbers, a *scraped, named map[[2]string]bool) {
	node := ""
	if nodes := a.nodes(); len(nodes) == 1 {
		node = o.node(nodes[0])
	}
	from := a.series[measure{metric: threshold}]
	for _, name := range a.callers() {
		if named[[2]string{o.cluster, name}] && name != o.host {
			continue
		}
		of := func(metric string) []float64 { return n.added(a, a.series[measure{metric: metric, caller: name}]) }
		calls, slow, seconds := of(callerCalls), of(callerSlow), of(callerSeconds)
		waiting := int64(0) // calls of steps without a slow one
		for i := 1; i < n.points; i++ {
			waiting += int64(calls[i])
			if slow[i] == 0 && (i < n.points-1 || waiting == 0) {
				continue
			}
			lost := seconds[i]
			if from != nil && from[i] > 0 {
				lost -= slow[i] * from[i]
			}
			r.add("edge_row", o.cluster, o.host, n.at(i-1).UnixNano(), int64(n.step), name, "", "", "", "", node,
				waiting, int64(slow[i]), int64(math.Round(max(lost, 0)*1e9)))
			waiting = 0
		}
	}
}

// callers are the names of those that an agent counts.
func (a *scraped) callers() []string {
	names := map[string]bool{}
	for m := range a.series {
		if m.metric == callerCalls || m.metric == callerSlow {
			names[m.caller] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// namedCallers are addresses of hosts whose own agents name the callers there: they are not counted once more.
func (n *numbers) namedCallers() map[[2]string]bool {
	named := map[[2]string]bool{}
	for _, a := range n.agents {
		for _, name := range a.callers() {
			if _, err := netip.ParseAddr(name); err != nil && name != others {
				named[[2]string{a.cluster(), a.host}] = true
			}
		}
	}
	return named
}

// others is the caller that stands for those without a series.
const others = "other"

// tell says what the rows do not have.
func (n *numbers) tell(q PrometheusQuestion) {
	var missing []string
	several := 0
	for _, a := range n.agents {
		if n.missing(a, q.Filter.To) {
			missing = append(missing, a.host)
		}
		if len(a.nodes()) > 1 && len(a.callers()) > 0 {
			several++
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		q.Say(fmt.Sprintf("%d of %s: not scraped during a part of this time, such as %s: calls of that part count "+
			"when it was scraped again, or are not known", len(missing), format.Count(len(n.agents), "agent"),
			strings.Join(missing[:min(len(missing), 3)], ", ")))
	}
	if q.Question.Name != "since" && several > 0 {
		q.Say(fmt.Sprintf("%s with several nodes: Prometheus does not say which of them a caller calls",
			format.Count(several, "agent")))
	}
}
