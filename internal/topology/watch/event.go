package watch

import (
	"encoding/json"
	"fmt"
	"time"

	"slowpath/internal/wire/cluster"
)

// Kind is what has changed in a cluster.
type Kind string

// The kinds of changes. Scripts rely on the names.
const (
	SlotMoved       Kind = "slot-moved"
	FailoverStarted Kind = "failover-started"
	FailoverEnded   Kind = "failover-ended"
	NodeJoined      Kind = "node-joined"
	NodeLeft        Kind = "node-left"
	// NodeUnreachable: a node does not answer this watch, whatever the others hold of it.
	NodeUnreachable Kind = "node-unreachable"
	NodeBack        Kind = "node-back"
)

// Event is one change of the map.
type Event struct {
	Time  time.Time
	Kind  Kind
	Slots []cluster.Range // that moved or fail over
	// host:port of the old owner, the failing master, the node that left or does not answer; else empty
	From string
	To   string // host:port of the new owner, the node that joined or is back; empty where there is none (yet)
	// id of the new owner, the failing master, or the node that joined, left, does not answer or is back
	Node string
}

// MarshalJSON writes the line of `slowpath topology watch --json`: always all six fields, some of them empty.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time  string `json:"time"`
		Kind  Kind   `json:"kind"`
		Slots string `json:"slots"`
		From  string `json:"from"`
		To    string `json:"to"`
		Node  string `json:"node"`
	}{e.Time.UTC().Format(time.RFC3339Nano), e.Kind, cluster.FormatRanges(e.Slots), e.From, e.To, e.Node})
}

// String is the event as a line of text, without its time.
func (e Event) String() string {
	slots := cluster.FormatRanges(e.Slots)
	switch e.Kind {
	case SlotMoved:
		return fmt.Sprintf("%-16s %s from %s to %s", e.Kind, slots, orNoOwner(e.From), orNoOwner(e.To))
	case FailoverStarted:
		return fmt.Sprintf("%-16s of %s, which has the slots %s", e.Kind, e.From, slots)
	case FailoverEnded:
		if e.From == e.To {
			return fmt.Sprintf("%-16s %s is back, with its slots %s", e.Kind, e.To, slots)
		}
		return fmt.Sprintf("%-16s %s from %s to %s", e.Kind, slots, e.From, orNoOwner(e.To))
	case NodeLeft, NodeUnreachable:
		return fmt.Sprintf("%-16s %s, %s", e.Kind, e.From, e.Node)
	}
	return fmt.Sprintf("%-16s %s, %s", e.Kind, e.To, e.Node)
}

func orNoOwner(address string) string {
	if address == "" {
		return "no owner"
	}
	return address
}

// SlotCount is the number of slots in the event.
func (e Event) slotCount() int {
	sum := 0
	for _, r := range e.Slots {
		sum += r.Len()
	}
	return sum
}
