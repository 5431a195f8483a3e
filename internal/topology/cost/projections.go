package cost

import "slices"

// Projection is what map refreshes would cost on a version with so many nodes and clients.
type Projection struct {
	Server    string  `json:"server"` // the measured version, or "now" for the target's own
	Command   string  `json:"command"`
	Nodes     int     `json:"nodes"`
	Clients   int     `json:"clients"`
	PeriodNs  int64   `json:"period_ns"`
	AskAll    bool    `json:"ask_all"` // each client asks all nodes; else one
	PerCallNs int64   `json:"per_call_ns"`
	PerNode   float64 `json:"calls_per_second_per_node"`
	Share     float64 `json:"share"` // of a node's main thread; above 1 the node cannot serve them
}

// Projections estimates the measured versions for maps with these numbers of nodes. The target's own version is among
// them: Model.Reference.
func (a RefreshLoad) Projections(m *Model, size Size, nodes []int) []Projection {
	out := []Projection{}
	if m == nil {
		return out
	}
	for _, version := range measuredVersions {
		for _, c := range []Command{a.Command, Slots} {
			// SLOTS in addition to the present command only on Valkey ≥ 8.0, which caches it.
			if c != a.Command && version != cachedSlotsVersion {
				continue
			}
			if c == Slots && a.Command == Slots && slices.ContainsFunc(out,
				func(w Projection) bool { return w.Server == version }) {
				continue
			}
			for _, n := range nodes {
				perCall, ok := m.on(version, c, size.scaledTo(n))
				if !ok {
					continue
				}
				w := Projection{
					Server: version, Command: c.String(), Nodes: n, Clients: a.Clients,
					PeriodNs: a.Period.Nanoseconds(), AskAll: a.AskAll, PerCallNs: perCall.Nanoseconds(),
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
const cachedSlotsVersion = "valkey-8.1.1"
