package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/topology/cost"
)

// Analyse makes the report of a survey: a pure function, without a clock or a network. The survey has a map at least of
// the first node.
func Analyse(s *Survey, q Question) *Report {
	v := compare(s)
	r := &Report{
		Schema: Schema, Version: q.Version, Target: Target{s.Looks[0].Addr, s.Looks[0].Server},
		Window: Window{s.Start.UTC(), s.Window.Seconds()},
		Map:    v.summary(), Shards: v.shards(s), Views: v.list(s), Disagreements: v.disagreements(),
		Uncovered: v.uncovered(), Moving: v.moving(),
		Refreshers: refreshers(s), Libraries: libraries(s), Refreshes: countRefreshes(s), Findings: []Finding{},
		BlindSpots: []BlindSpot{}, WhatIf: []cost.WhatIf{}, WaysOut: []cost.WayOut{},
	}
	byCounters(r.Refreshers, &r.Refreshes)
	a := q.askingOf(&r.Refreshes, r.Refreshers, r.Libraries, r.Map.Size.Nodes)
	r.Model = modelFor(s.Looks[0], a.Command, v.reference())
	r.WhatIf = a.WhatIf(r.Model, r.Map.Size, q.sizes(r.Map.Size.Nodes))
	r.WaysOut = waysOut(a, &r.Refreshes, r.Model, r.Map, r.Refreshers, r.Libraries)
	r.judge(v)
	r.unseen(s)
	r.Cost = costOf(s)
	return r
}

// modelFor takes the measurement of the command that clients ask, else that of another one.
func modelFor(l *Look, c cost.Command, ref *Look) *cost.Model {
	size := cost.SizeOf(l.Map)
	if l.Source != cost.Nodes {
		size = cost.SizeOf(ref.Map)
	}
	order := slices.Clone(l.Measured)
	slices.SortStableFunc(order, func(a, b cost.Measured) int {
		return cmp.Compare(rank(a.Command, c), rank(b.Command, c))
	})
	for _, m := range order {
		if model, ok := cost.ModelOf(l.Server, m, size); ok {
			return model
		}
	}
	return nil
}

func rank(c, wanted cost.Command) int {
	if c == wanted {
		return 0
	}
	return 1
}

// unseen says what is missing, each kind once with the nodes it is missing of.
func (r *Report) unseen(s *Survey) {
	type key struct{ command, why string }
	by := map[key][]string{}
	var order []key
	for _, l := range s.Looks {
		for _, f := range l.Refused {
			if strings.HasPrefix(f.Command, "CLUSTER LINKS") && strings.Contains(strings.ToLower(f.Why), "unknown") {
				continue // before 7.0 there is none
			}
			k := key{f.Command, f.Why}
			if by[k] == nil {
				order = append(order, k)
			}
			by[k] = append(by[k], l.Addr)
		}
	}
	for _, k := range order {
		r.BlindSpots = append(r.BlindSpots, BlindSpot{What: hides[k.command], Why: k.command + " of " + few(by[k], 3) +
			": " + k.why, Enable: enable(k.command, k.why)})
		if last := &r.BlindSpots[len(r.BlindSpots)-1]; last.What == "" {
			last.What = "what " + k.command + " tells"
		}
	}
	if r.Model == nil {
		if !cost.Known(s.Looks[0].Server) && s.Looks[0].Server != "" {
			r.BlindSpots = append(r.BlindSpots, BlindSpot{
				What:   "what refreshes would cost at other sizes",
				Why:    fmt.Sprintf("the cost of the commands on %s was never measured", s.Looks[0].Server),
				Enable: "nothing does",
			})
		}
	}
}

// hides says what a refused command would tell.
var hides = map[string]string{
	"INFO":              "roles, lag and CPU time",
	"INFO commandstats": "what refreshes cost now, and what one costs",
	"CLIENT LIST":       "who refreshes the topology",
	"CLUSTER NODES":     "flags, epochs, open slots and links, and nodes without slots",
	"CLUSTER INFO":      "the state of the cluster and its epoch",
	"CLUSTER LINKS":     "the buffers of the cluster bus",
	"SLOWLOG GET":       "slow refreshes",
}

func enable(command, why string) string {
	switch {
	case strings.Contains(why, "NOPERM"):
		return "let the user have it: ACL SETUSER <user> +" +
			strings.Replace(strings.ToLower(strings.TrimSuffix(command, " commandstats")), " ", "|", 1)
	case strings.HasPrefix(why, "not asked"):
		return "look at fewer clients: it is asked below about " + fmt.Sprint(int(dearList/perClient)) + " of one node"
	}
	return "ask a user or an address that may use it"
}

// costOf is what the survey itself took, by the servers' own means per call.
func costOf(s *Survey) OwnCost {
	c := OwnCost{Commands: map[string]int{}}
	for _, l := range s.Looks {
		total, took := 0, time.Duration(0)
		_, last := l.counted()
		for name, n := range l.Sent {
			c.Commands[name] += n
			total += n
			fields := l.Fields
			if last != nil {
				fields = last.Stats
			}
			if calls, usec, _, ok := fields.Command(name); ok && calls > 0 {
				took += time.Duration(usec / calls * float64(n) * float64(time.Microsecond))
			}
		}
		c.PerNode = max(c.PerNode, total)
		c.ServerTimeNs += took.Nanoseconds()
		c.MaxNodeNs = max(c.MaxNodeNs, took.Nanoseconds())
	}
	return c
}
