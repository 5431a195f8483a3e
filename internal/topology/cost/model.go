package cost

import (
	"time"

	"slowpath/internal/wire/cluster"
)

// Model says what a call costs on a map of any size: the law of the version, times the speed of this machine.
type Model struct {
	Command    string  `json:"command"`
	Reference  string  `json:"reference"`   // the measured version whose law is used
	Formula    string  `json:"formula"`     // in microseconds
	Size       Size    `json:"size"`        // where it was measured
	MeasuredNs int64   `json:"measured_ns"` // one call on the target, of the cheapest of several batches
	Calls      int     `json:"calls"`       // that were measured
	Bytes      int     `json:"reply_bytes"`
	Scale      float64 `json:"scale"` // time on the target / time on the machine of the reference
	Alone      bool    `json:"alone"` // no calls of others were counted with them

	law law
}

// ModelOf fits the law of the target's version to the measurement on the target.
func ModelOf(product string, m Measured, s Size) (*Model, bool) {
	reference, ok := measuredVersionFor(product)
	if !ok {
		return nil, false
	}
	l, ok := laws()[lawKey{reference, m.Command}]
	if !ok || l.at(s) <= 0 || m.PerCall <= 0 {
		return nil, false
	}
	scale := float64(m.PerCall) / float64(time.Microsecond) / l.at(s)
	return &Model{
		Command: m.Command.String(), Reference: reference, Formula: l.formula(scale), Size: s,
		MeasuredNs: m.PerCall.Nanoseconds(), Calls: m.Calls, Bytes: m.Bytes,
		Scale: scale, Alone: m.Alone, law: l,
	}, true
}

// At is one call on a map of that size on the target's version.
func (m *Model) At(s Size) time.Duration { return microseconds(m.Scale * m.law.at(s)) }

// on is one call of a command on a map of that size on another version, on the same machine.
func (m *Model) on(reference string, c Command, s Size) (time.Duration, bool) {
	l, ok := laws()[lawKey{reference, c}]
	if !ok {
		return 0, false
	}
	return microseconds(m.Scale * l.at(s)), true
}

// scaledTo is the map with so many nodes, with as many ranges and replicas per node as now.
func (s Size) scaledTo(nodes int) Size {
	share := float64(nodes) / float64(max(1, s.Nodes))
	by := func(n int) int { return max(1, int(float64(n)*share+0.5)) }
	// There are at most as many ranges as slots.
	g := Size{Nodes: nodes, Masters: by(s.Masters), Ranges: min(by(s.Ranges), cluster.SlotCount)}
	g.Entries = int(float64(g.Ranges)*float64(s.Entries)/float64(max(1, s.Ranges)) + 0.5)
	return g
}

// Of is one call of a command on a map of that size on the target: where the command was not measured there, by the
// ratio of the two in the reference. It is false for a command that the version does not have.
func (m *Model) Of(c Command, s Size) (time.Duration, bool) { return m.on(m.Reference, c, s) }

// OnReference is one call of a command on the machine of the reference, for a product such as "redis 6.0.16". It is
// false where the version is not known, or does not have the command.
func OnReference(product string, c Command, s Size) (time.Duration, bool) {
	reference, ok := measuredVersionFor(product)
	if !ok {
		return 0, false
	}
	l, ok := laws()[lawKey{reference, c}]
	return microseconds(l.at(s)), ok
}
