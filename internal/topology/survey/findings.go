package survey

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/wire/cluster"
)

// shareWorthIt is the share of a node's main thread from which on refreshes are a finding: incident 002 was noticed at
// 18 %, and a twentieth is what an operator would not give away to bookkeeping.
const shareWorthIt = 0.05

// silentTooLong is three pings that did not come: masters ping their replicas every repl-ping-replica-period, by
// default 10 s.
const silentTooLong = 30 * time.Second

func (r *Report) find(id, text string, fix ...string) {
	r.Findings = append(r.Findings, Finding{ID: id, Text: text, Fix: append([]string{}, fix...)})
}

// judge lists what to act on, the worst first.
func (r *Report) judge(v *views) {
	r.judgeSlots()
	r.judgeMembers()
	r.judgeViews(v)
	r.judgeMoves()
	r.judgeReplicas()
	r.judgeRefreshes()
	r.Verdict = Healthy
	if len(r.Findings) > 0 {
		r.Verdict = Findings
	}
}

func (r *Report) judgeSlots() {
	if missing := cluster.SlotCount - r.Map.SlotsCovered; missing > 0 {
		r.find("uncovered-slots", fmt.Sprintf("%s belong to nobody: %s; with cluster-require-full-coverage yes (the "+
			"default) no node serves anything", format.Count(missing, "slot"), few(r.Uncovered, 6)),
			"if a node that had them is down: bring it back, or promote its replica",
			"else give them to a master: redis-cli --cluster fix "+r.Target.Address)
	}
	var down []string
	for _, view := range r.Views {
		if view.State == "fail" {
			down = append(down, view.Address)
		}
	}
	if len(down) > 0 {
		r.find("cluster-state-fail", fmt.Sprintf("%s: cluster_state:fail, they refuse commands with CLUSTERDOWN: %s",
			format.Count(len(down), "node"), few(down, 6)))
	}
}

// judgeMembers tells of nodes that others hold for failed, or that could not be asked, each group in one finding.
func (r *Report) judgeMembers() {
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
		r.find("failed-nodes", fmt.Sprintf("%s failed: %s", format.Count(len(list), "node"), few(list, 6)),
			"bring it back, or remove it: redis-cli --cluster del-node "+r.Target.Address+" NODE-ID")
	}
	if list := groups[stateSuspected]; len(list) > 0 {
		r.find("suspected-nodes", fmt.Sprintf("%s suspected by some (fail?): %s", format.Count(len(list), "node"),
			few(list, 6)), "look at the network between the nodes, and whether it is stalled: slowpath doctor "+list[0])
	}
	if list := groups[stateUnreachable]; len(list) > 0 {
		r.find("no-answer", fmt.Sprintf("%s in good standing with the others, and not answering slowpath: %s (%s)",
			format.Count(len(list), "node"), few(list, 6), why),
			"if clients cannot reach it either, they run into timeouts: check the address that the node announces "+
				"(cluster-announce-ip), and firewalls")
	}
}

func (r *Report) judgeViews(v *views) {
	var texts, by []string
	for _, d := range r.Disagreements {
		if d.Kind != "epoch" { // gossip needs a moment after each change; alone it hurts nobody
			texts = append(texts, d.What)
			by = append(by, d.By...)
		}
	}
	if len(texts) > 0 {
		r.find("views-disagree", fmt.Sprintf("the nodes do not hold the same map: %s", few(texts, 3)),
			"clients that ask these nodes route wrongly: "+few(unique(by), 6), "if it stays for longer than a "+
				"minute, the cluster bus (port + 10000) between them is cut")
	}
	for _, names := range v.sameEpoch() {
		r.find("same-epoch", "masters with the same config epoch: "+few(names, 6)+"; when both claim a slot, neither "+
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

func (r *Report) judgeMoves() {
	var open, half []string
	for _, m := range r.Moving {
		text := fmt.Sprintf("%s from %s to %s", m.Slots, m.From, m.To)
		if m.Source && m.Taker {
			open = append(open, text)
			continue
		}
		end := "only the source says so"
		if m.Taker {
			end = "only the receiver says so"
		}
		half = append(half, text+" ("+end+")")
	}
	if len(open) > 0 {
		r.find("open-slots", "slots are being moved: "+few(open, 4)+"; keys that have gone cost a call an ASK and "+
			"another round trip", "if nobody moves slots now, the move was left undone: redis-cli --cluster "+
			"fix "+r.Target.Address)
	}
	if len(half) > 0 {
		r.find("half-open-slots", "a move that only one end knows of: "+few(half, 4),
			"redis-cli --cluster fix "+r.Target.Address)
	}
}

func (r *Report) judgeReplicas() {
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
			case m.LagNs != nil && time.Duration(*m.LagNs) >= silentTooLong:
				silent = append(silent, fmt.Sprintf("%s for %v", m.Address, time.Duration(*m.LagNs)))
			}
		}
	}
	if len(broken) > 0 {
		r.find("replica-link-down", "replicas are not in step with their masters: "+few(broken, 4),
			"reads of them are stale, and they cannot take over: see the log of the replica, and repl-backlog-size "+
				"of the master")
	}
	if len(silent) > 0 {
		r.find("replica-silent", "replicas have not heard from their masters: "+few(silent, 4))
	}
	if len(alone) > 0 {
		r.find("no-replica", fmt.Sprintf("%s without a replica, while others have one: %s", format.Count(len(alone),
			"master"), few(alone, 6)), "redis-cli --cluster add-node NEW "+r.Target.Address+" --cluster-slave "+
			"--cluster-master-id ID")
	}
}

// judgeRefreshes holds the cost of refreshes against what an operator would notice.
func (r *Report) judgeRefreshes() {
	if r.Refreshes.ShareMax < shareWorthIt {
		return
	}
	fix := []string{}
	for _, w := range r.WaysOut {
		if w.Possible && w.Saves > 0 {
			fix = append(fix, fmt.Sprintf("%s: saves the masters %.0f %% of it (how: see the ways out)", w.Title,
				w.Saves*100))
		}
	}
	who := ""
	if len(r.Refreshers) > 0 && r.Refreshers[0].Library != "" {
		who = " by " + r.Refreshers[0].Library
	} else if r.Refreshes.LettuceLike {
		who = ", as Lettuce does it (a new connection, CLUSTER NODES, INFO)"
	}
	r.find("topology-refresh-storm", fmt.Sprintf("refreshes of the clients' topology%s take %.0f %% of the main "+
		"thread of %s", who, r.Refreshes.ShareMax*100, r.Refreshes.ShareMaxNode), fix...)
}
