package views

import (
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/topology/watch"
)

// Watching says how a cluster is watched, with at most so many commands.
func Watching(r watch.Ready, most string) string {
	who := "each master"
	beat := r.PollEvery * time.Duration(max(r.Masters, 1))
	if r.Broadcast {
		who, beat = "one of the masters", r.PollEvery
		if r.Replica {
			who = "one of the replicas"
		}
	}
	return fmt.Sprintf("watching %s and %s: %s to %s every %v, at most %s in all; Ctrl-C ends it",
		format.Count(r.Masters, "master"), format.Count(r.Replicas, "replica"), r.Command, who,
		beat.Round(time.Millisecond), most)
}

// Watched says what was seen of a cluster, and what that cost it.
func Watched(s watch.Summary, published bool) string {
	seconds := s.Took.Seconds()
	text := fmt.Sprintf("in %v: %s moved, %s, %s joined, %d left, %d became unreachable; %s to %s "+
		"(%.1f/s; at most %.1f/s to one node)",
		s.Took.Round(time.Second/10), format.Count(s.Slots, "slot"),
		format.Count(s.Kinds[watch.FailoverEnded], "failover"), format.Count(s.Kinds[watch.NodeJoined], "node"),
		s.Kinds[watch.NodeLeft], s.Kinds[watch.NodeUnreachable], format.Count(s.Commands, "command"),
		format.Count(s.Nodes, "node"), float64(s.Commands)/seconds, float64(s.Busiest)/seconds)
	if published {
		text += fmt.Sprintf("; %s published", format.Count(s.Published, "message"))
	}
	return text
}
