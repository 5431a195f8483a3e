package cause_test

import (
	"encoding/json"
	"fmt"

	"slowpath/internal/recording"
)

// What the causes of the network path are tested on: the recordings of case_edge_test.go with what the tap
// sees.

const (
	pathClient = "10.0.0.7:51000"
	pathOther  = "10.0.0.7:52000"
)

func newPath() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.1, 0.01) }

// lane is a connection of app[7] that makes so many calls each second, with its time in flight and its pauses for each
// of them.
func (e edge) lane(client string, calls, eachNs, idleNs int64) edge {
	e.event(recording.SourceTap, recording.KindOpen, 1, 0, recording.ConnDetail{
		Client: client, PID: 7, Comm: "app",
		Side: recording.Client,
	})
	for s := int64(1); s <= 10; s++ {
		e.looked(client, s*1e9, s*calls, s*calls*eachNs, s*calls*idleNs)
	}
	return e
}

// ends is the process of a connection, and whether its kernel holds small segments back.
func (e edge) ends(client, nagle string) edge {
	b, _ := json.Marshal(recording.ConnEnds{Node: edgeNode, PID: 7, Comm: "app", Nagle: nagle})
	e.Snapshot(recording.Snapshot{
		TimeNs: edgeMs, Source: recording.SourceTap, Subject: recording.ConnPrefix + client, Name: "ends",
		Body: string(b),
	})
	return e
}

// prompts says how many calls of a lane were sent right after the reply before.
func (e edge) prompts(client string, each int64) edge {
	for s := int64(1); s <= 10; s++ {
		e.Sample(recording.Sample{
			TimeNs: s * 1e9, Source: recording.SourceTap, Subject: recording.ConnPrefix + client,
			Name: "prompt", Value: float64(s * each),
		})
	}
	return e
}

// inTurns says how often another thread used a lane than before, each second.
func (e edge) inTurns(client string, each int64) edge {
	for s := int64(1); s <= 10; s++ {
		e.Sample(recording.Sample{
			TimeNs: s * 1e9, Source: recording.SourceTap, Subject: recording.ConnPrefix + client,
			Name: "turns", Value: float64(s * each),
		})
	}
	return e
}

// chained says how many chains of calls of a command a lane had each second, and their time.
func (e edge) chained(client, op string, chains, calls, ns, inFlightNs int64) edge {
	for s := int64(1); s <= 10; s++ {
		for name, v := range map[string]int64{
			"chains": chains, "chain_calls": calls, "chain_ns": ns, "chain_in_flight_ns": inFlightNs,
			"chain_of." + op: chains,
		} {
			e.Sample(recording.Sample{
				TimeNs: s * 1e9, Source: recording.SourceTap, Subject: recording.ConnPrefix + client,
				Name: name, Value: float64(s * v),
			})
		}
	}
	return e
}

// looked is one sample of the use of a connection.
func (e edge) looked(client string, at, calls, inFlightNs, idleNs int64) edge {
	for name, v := range map[string]int64{"calls": calls, "in_flight_ns": inFlightNs, "idle_ns": idleNs} {
		e.Sample(recording.Sample{
			TimeNs: at, Source: recording.SourceTap, Subject: recording.ConnPrefix + client,
			Name: name, Value: float64(v),
		})
	}
	return e
}

// part is a piece of a call, in milliseconds.
type part struct {
	actor, state string
	ms           int64
	culprit      string
}

// seen is a call of app[7] that the tap saw, in parts.
func (e edge) seen(client, op string, at, replyBytes int64, parts ...part) edge {
	c := recording.Call{
		Source: recording.SourceTap, Conn: client, Op: op, Node: edgeNode, Slot: -1,
		ReplyBytes: replyBytes, IntendedNs: at, StartNs: at, Side: "both", Client: "app[7]",
	}
	var segs []recording.Segment
	for _, p := range parts {
		segs = append(segs, recording.Segment{
			Actor: p.actor, State: p.state, FromNs: at, ToNs: at + p.ms*edgeMs,
			Culprit: p.culprit,
		})
		at += p.ms * edgeMs
	}
	c.EndNs = at
	e.Call(c, segs...)
	return e
}

// worked is what the server did between two socket events.
func (e edge) worked(at, ms int64, d recording.ActivityDetail) edge {
	return e.event(recording.SourceTap, recording.KindActivity, at, ms*edgeMs, d)
}

// clients are the addresses of n connections.
func clients(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("10.0.0.7:%d", 53000+i))
	}
	return out
}
