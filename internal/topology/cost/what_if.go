package cost

import "slices"

// WhatIf is what refreshing would cost on a version with so many nodes and clients.
type WhatIf struct {
	Server    string  `json:"server"` // the measured version, or "now" for the target's own
	Command   string  `json:"command"`
	Nodes     int     `json:"nodes"`
	Clients   int     `json:"clients"`
	PeriodNs  int64   `json:"period_ns"`
	AskAll    bool    `json:"ask_all"` // each client asks all nodes; else one
	PerCallNs int64   `json:"per_call_ns"`
	PerNode   float64 `json:"calls_per_second_per_node"`
	Share     float64 `json:"share"` // of the time of a node's main thread; above 1 it cannot be served
}

// WhatIf reckons the measured versions for a map with these numbers of nodes. The target's own is among them, by the
// version which Reference names.
func (a Asking) WhatIf(m *Model, size Size, nodes []int) []WhatIf {
	out := []WhatIf{}
	if m == nil {
		return out
	}
	for _, version := range references {
		for _, c := range []Command{a.Command, Slots} {
			// SLOTS beside what is asked now only where it costs another order: since Valkey 8.0 it is cached.
			if c != a.Command && version != cachedSlots {
				continue
			}
			if c == Slots && a.Command == Slots && slices.ContainsFunc(out,
				func(w WhatIf) bool { return w.Server == version }) {
				continue
			}
			for _, n := range nodes {
				perCall, ok := m.on(version, c, size.grown(n))
				if !ok {
					continue
				}
				w := WhatIf{
					Server: version, Command: c.String(), Nodes: n, Clients: a.Clients,
					PeriodNs: a.Period.Nanoseconds(), AskAll: a.Everyone, PerCallNs: perCall.Nanoseconds(),
				}
				w.PerNode = a.Rate(n)
				w.Share = w.PerNode * perCall.Seconds()
				out = append(out, w)
			}
		}
	}
	return out
}

// cachedSlots is the measured version that caches the reply of CLUSTER SLOTS.
const cachedSlots = "valkey-8.1.1"
