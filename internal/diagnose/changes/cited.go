package changes

import (
	"strings"
	"time"

	"slowpath/internal/format"
)

// Seen is a change as a diagnosis names it.
type Seen struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// By is who made it; several where it may be one of them.
	By []string `json:"by,omitempty"`
	// Node is the server that it is about; empty for the host. A finding says it where several are watched.
	Node   string    `json:"node,omitempty"`
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	// WithinNs is how exactly the time is known, in nanoseconds: it was at Time or up to so much later.
	WithinNs int64 `json:"within_ns"`
}

// Cited is a change that came before a finding. That it came before does not make it the cause.
type Cited struct {
	Seen
	// BeforeNs is how long before the first of the finding's slow calls after it, in nanoseconds; 0 where these came
	// at once, or the finding has none.
	BeforeNs int64 `json:"before_ns"`
	// ByMechanism: the mechanism of the cause is one that such a change can set going.
	ByMechanism bool `json:"by_mechanism"`
}

// Seen is the change as a diagnosis names it.
func (c Change) Seen() Seen {
	return Seen{
		Kind: c.Kind, Text: c.Text, By: c.By, Node: c.Node, Source: c.Source, Time: time.Unix(0, c.FromNs).UTC(),
		WithinNs: c.ToNs - c.FromNs,
	}
}

// Made reports whether somebody made the change: restarts, roles and maps also change by themselves, as what they are
// cited for.
func (c Cited) Made() bool {
	return len(c.By) > 0 || c.Kind != Restart && c.Kind != Role && c.Kind != Map
}

// about is from when on a time is not known exactly enough to be said without that.
// Bound: arithmetic, how a time is said.
const about = int64(200e6)

// Sentence says what was changed, by whom and how long before.
func (c Cited) Sentence() string {
	s := c.Text
	if len(c.By) > 0 {
		s += " by " + strings.Join(c.By, " or ")
	}
	if c.Node != "" {
		s += ", at " + c.Node
	}
	switch {
	case c.BeforeNs <= 0:
		return s + ", right before"
	case c.WithinNs > about:
		return s + ", about " + format.Brief(c.BeforeNs) + " before"
	}
	return s + ", " + format.Brief(c.BeforeNs) + " before"
}
