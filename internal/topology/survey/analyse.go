package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/topology/cost"
)

// Analyse makes the report of a survey: a pure function, without clock or network. At least the first node of the
// survey must have a map.
func Analyse(s *Survey, assumed Assumptions) *Report {
	v := newViews(s)
	r := &Report{
		Schema: Schema, Version: assumed.Version, Target: Target{s.Nodes[0].Addr, s.Nodes[0].Server},
		Window: Window{s.Start.UTC(), s.Window.Seconds()},
		Map:    v.summary(), Shards: v.shards(s), Views: v.list(s), Disagreements: v.disagreements(),
		Uncovered: v.uncovered(), Moving: v.moving(),
		Refreshers: refreshers(s), Libraries: libraries(s), Refreshes: countRefreshes(s), Findings: []Finding{},
		BlindSpots: []BlindSpot{}, Projections: []cost.Projection{}, Options: []cost.Option{},
	}
	setPeriodsByCounters(r.Refreshers, &r.Refreshes, s.Window)
	load := assumed.refreshLoad(&r.Refreshes, r.Refreshers, r.Libraries, r.Map.Size.Nodes)
	r.Model = modelFor(s.Nodes[0], load.Command, v.majorityNode())
	r.Projections = load.Projections(r.Model, r.Map.Size, assumed.sizes(r.Map.Size.Nodes))
	r.Options = savingOptions(load, &r.Refreshes, r.Model, r.Map, r.Refreshers, r.Libraries)
	r.findProblems(v)
	r.addBlindSpots(s)
	r.Cost = costOf(s)
	return r
}

// modelFor uses the measurement of the command that clients send, else of another one.
func modelFor(l *NodeState, c cost.Command, ref *NodeState) *cost.Model {
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

// addBlindSpots lists what is missing, each kind once with the nodes that it is missing of.
func (r *Report) addBlindSpots(s *Survey) {
	type key struct{ command, why string }
	by := map[key][]string{}
	var order []key
	for _, l := range s.Nodes {
		for _, f := range l.Refused {
			if strings.HasPrefix(f.Command, "CLUSTER LINKS") && strings.Contains(strings.ToLower(f.Why), "unknown") {
				continue // the command came with 7.0
			}
			k := key{f.Command, f.Why}
			if by[k] == nil {
				order = append(order, k)
			}
			by[k] = append(by[k], l.Addr)
		}
	}
	for _, k := range order {
		r.BlindSpots = append(r.BlindSpots, BlindSpot{What: hiddenBy[k.command], Why: k.command + " of " +
			joinFew(by[k], 3) +
			": " + k.why, Enable: s.enable(k.command, k.why)})
		if last := &r.BlindSpots[len(r.BlindSpots)-1]; last.What == "" {
			last.What = "what " + k.command + " returns"
		}
	}
	r.addWithheld(s)
	r.addTooMany()
	if r.Model == nil {
		if !cost.Known(s.Nodes[0].Server) && s.Nodes[0].Server != "" {
			r.BlindSpots = append(r.BlindSpots, BlindSpot{
				What:   "what refreshes would cost at other sizes",
				Why:    fmt.Sprintf("the cost of the commands on %s has not been measured", s.Nodes[0].Server),
				Enable: "cannot be enabled",
			})
		}
	}
}

// addWithheld says which nodes were not asked because the password would be sent there.
func (r *Report) addWithheld(s *Survey) {
	var nodes []string
	for _, l := range s.Nodes {
		if l.Withheld {
			nodes = append(nodes, l.Addr)
		}
	}
	if len(nodes) > 0 {
		from := s.Nodes[0].Addr
		r.BlindSpots = append(r.BlindSpots, BlindSpot{
			What: "the views of " + format.Count(len(nodes), "node") + ": " + joinFew(nodes, 3),
			Why: "not in a private network with " + from + ", whose cluster names them: the password would be sent " +
				"there",
			Enable: "-c, if all nodes that " + from + " names may have the password",
		})
	}
}

// addTooMany says how many nodes were not asked because there are so many.
func (r *Report) addTooMany() {
	left := 0
	for _, sh := range r.Shards {
		for _, m := range append(sh.Replicas, sh.Master) {
			if m.Why == tooMany {
				left++
			}
		}
	}
	if left > 0 {
		r.BlindSpots = append(r.BlindSpots, BlindSpot{
			What: "the views of " + format.Count(left, "node"), Enable: "cannot be enabled",
			Why: fmt.Sprintf("each node lists all others: of %d nodes no more than %d are asked", r.Map.Size.Nodes,
				mostAsked(r.Map.Size.Nodes)),
		})
	}
}

// hiddenBy is what is not known without a command.
var hiddenBy = map[string]string{
	"INFO":              "roles, lag and CPU time",
	"INFO commandstats": "what map refreshes cost now, and what one costs",
	"CLIENT LIST":       "which clients refresh the map",
	"CLUSTER NODES":     "flags, epochs, open slots and links, and nodes without slots",
	"CLUSTER INFO":      "the state of the cluster and its epoch",
	"CLUSTER LINKS":     "the buffers of the cluster bus",
	"SLOWLOG GET":       "slow map refreshes",
}

func (s *Survey) enable(command, why string) string {
	switch {
	case strings.Contains(why, "NOPERM"):
		return s.target.Grant("+" +
			strings.Replace(strings.ToLower(strings.TrimSuffix(command, " commandstats")), " ", "|", 1))
	case strings.HasPrefix(why, "not sent"):
		return fmt.Sprintf("it is sent only to nodes with less than about %d clients", int(maxListTime/perClient))
	}
	return "use a user or an address that may send it"
}

// costOf is what the survey itself cost, by the servers' own mean time per call.
func costOf(s *Survey) OwnCost {
	c := OwnCost{Commands: map[string]int{}}
	for _, l := range s.Nodes {
		total, took := 0, time.Duration(0)
		_, last := l.countedTicks()
		for name, n := range l.Sent {
			c.Commands[name] += n
			total += n
			fields := l.InfoFields
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
