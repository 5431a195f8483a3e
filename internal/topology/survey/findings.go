package survey

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/wire/cluster"
)

// minFindingShare is the share of a node's main thread from which refreshes are a finding. An operator noticed a real
// case at 18 %; 5 % is more than map refreshes should take.
const minFindingShare = 0.05

// maxSilence is three missed pings: masters ping their replicas every repl-ping-replica-period, by default 10 s.
const maxSilence = 30 * time.Second

func (r *Report) addFinding(id, text string, fix ...string) {
	r.Findings = append(r.Findings, Finding{ID: id, Text: text, Fix: append([]string{}, fix...)})
}

// findProblems lists what to act on, the worst first.
func (r *Report) findProblems(v *views) {
	r.checkSlots()
	r.checkMembers()
	r.checkViews(v)
	r.checkMoves()
	r.checkReplicas()
	r.checkRefreshes()
	r.Verdict = Healthy
	if len(r.Findings) > 0 {
		r.Verdict = Findings
	}
}

func (r *Report) checkSlots() {
	if missing := cluster.SlotCount - r.Map.SlotsCovered; missing > 0 {
		r.addFinding("uncovered-slots", fmt.Sprintf("%s without an owner: %s; with cluster-require-full-coverage yes "+
			"(the "+
			"default) no node serves any key", format.Count(missing, "slot"), joinFew(r.Uncovered, 6)),
			"if a node that had them is down: bring it back, or promote its replica",
			"else assign them to a master: redis-cli --cluster fix "+r.Target.Address)
	}
	var down []string
	for _, view := range r.Views {
		if view.State == "fail" {
			down = append(down, view.Address)
		}
	}
	if len(down) > 0 {
		r.addFinding("cluster-state-fail", fmt.Sprintf("%s: cluster_state:fail, they refuse commands with "+
			"CLUSTERDOWN: %s",
			format.Count(len(down), "node"), joinFew(down, 6)))
	}
}

// checkMembers reports nodes that others mark as failed, or that do not answer, each group in one finding.
func (r *Report) checkMembers() {
	groups := map[string][]string{}
	why := ""
	for _, sh := range r.Shards {
		for _, m := range append([]Member{sh.Master}, sh.Replicas...) {
			groups[m.State] = append(groups[m.State], m.Address)
			if m.State == stateUnreachable && why == "" {
				why = m.Why
			}
		}
	}
	if list := groups[stateFailed]; len(list) > 0 {
		r.addFinding("failed-nodes", fmt.Sprintf("%s failed: %s", format.Count(len(list), "node"), joinFew(list, 6)),
			"bring it back, or remove it: redis-cli --cluster del-node "+r.Target.Address+" NODE-ID")
	}
	if list := groups[stateSuspected]; len(list) > 0 {
		r.addFinding("suspected-nodes", fmt.Sprintf("%s suspected by some (fail?): %s", format.Count(len(list), "node"),
			joinFew(list, 6)), "check the network between the nodes, and whether the node is stalled: slowpath "+
			"doctor "+list[0])
	}
	if list := groups[stateUnreachable]; len(list) > 0 {
		r.addFinding("no-answer", fmt.Sprintf("%s healthy for the other nodes, but not answering slowpath: %s (%s)",
			format.Count(len(list), "node"), joinFew(list, 6), why),
			"if clients cannot reach it either, they run into timeouts: check the address that the node announces "+
				"(cluster-announce-ip), and firewalls")
	}
}

func (r *Report) checkViews(v *views) {
	var texts, by []string
	for _, d := range r.Disagreements {
		if d.Kind != "epoch" { // gossip takes seconds after each change; alone it does no harm
			texts = append(texts, d.What)
			by = append(by, d.By...)
		}
	}
	if len(texts) > 0 {
		r.addFinding("views-disagree", fmt.Sprintf("the nodes do not have the same map: %s", joinFew(texts, 3)),
			"clients that ask these nodes route wrongly: "+joinFew(unique(by), 6), "if it lasts for longer than a "+
				"minute, the cluster bus (port + 10000) between them is interrupted")
	}
	for _, names := range v.sameEpoch() {
		r.addFinding("same-epoch", "masters with the same config epoch: "+joinFew(names, 6)+"; if both claim a slot, "+
			"neither "+
			"wins", "redis-cli -p PORT cluster bumpepoch on one of them")
	}
}

func unique(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func (r *Report) checkMoves() {
	var open, half []string
	for _, m := range r.Moving {
		text := fmt.Sprintf("%s from %s to %s", m.Slots, m.From, m.To)
		if m.Source && m.Taker {
			open = append(open, text)
			continue
		}
		end := "only the source shows it"
		if m.Taker {
			end = "only the receiver shows it"
		}
		half = append(half, text+" ("+end+")")
	}
	if len(open) > 0 {
		r.addFinding("open-slots", "slots are being moved: "+joinFew(open, 4)+"; calls for keys that have moved get "+
			"an ASK "+
			"and need another round trip", "if no resharding runs now, the move was not finished: redis-cli --cluster "+
			"fix "+r.Target.Address)
	}
	if len(half) > 0 {
		r.addFinding("half-open-slots", "a move that only one of the two nodes shows: "+joinFew(half, 4),
			"redis-cli --cluster fix "+r.Target.Address)
	}
}

func (r *Report) checkReplicas() {
	var broken, silent, alone []string
	served := false
	for _, sh := range r.Shards {
		served = served || len(sh.Replicas) > 0
	}
	for _, sh := range r.Shards {
		if served && len(sh.Replicas) == 0 && sh.Slots > 0 {
			alone = append(alone, sh.Master.Address)
		}
		for _, m := range sh.Replicas {
			switch {
			case m.State == stateLinkDown || m.State == stateSyncing || m.State == stateLoading:
				broken = append(broken, strings.TrimSpace(m.Address+" "+m.State+" "+m.Why))
			case m.LagNs != nil && time.Duration(*m.LagNs) >= maxSilence:
				silent = append(silent, fmt.Sprintf("%s for %v", m.Address, time.Duration(*m.LagNs)))
			}
		}
	}
	if len(broken) > 0 {
		r.addFinding("replica-link-down", "replicas are not in sync with their masters: "+joinFew(broken, 4),
			"reads from them are stale, and they cannot take over: see the log of the replica, and repl-backlog-size "+
				"of the master")
	}
	if len(silent) > 0 {
		r.addFinding("replica-silent", "replicas have received nothing from their masters: "+joinFew(silent, 4))
	}
	if len(alone) > 0 {
		r.addFinding("no-replica", fmt.Sprintf("%s without a replica, while other masters have one: %s",
			format.Count(len(alone),
				"master"), joinFew(alone, 6)), "redis-cli --cluster add-node NEW "+r.Target.Address+" --cluster-slave "+
			"--cluster-master-id ID")
	}
}

// checkRefreshes compares the cost of refreshes with what an operator would notice.
func (r *Report) checkRefreshes() {
	if r.Refreshes.ShareMax < minFindingShare {
		return
	}
	fix := []string{}
	for _, w := range r.Options {
		if w.Possible && w.Saves > 0 {
			fix = append(fix, fmt.Sprintf("%s: saves the masters %.0f %% of it (how: see the options)", w.Title,
				w.Saves*100))
		}
	}
	who := ""
	if len(r.Refreshers) > 0 && r.Refreshers[0].Library != "" {
		who = " by " + r.Refreshers[0].Library
	} else if r.Refreshes.LettuceLike {
		who = ", in the way of Lettuce (a new connection, CLUSTER NODES, INFO)"
	}
	r.addFinding("topology-refresh-storm", fmt.Sprintf("map refreshes of clients%s take %.0f %% of the main "+
		"thread of %s", who, r.Refreshes.ShareMax*100, r.Refreshes.ShareMaxNode), fix...)
}
