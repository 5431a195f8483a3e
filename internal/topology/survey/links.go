package survey

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/resp"
)

// maxLinks bounds CLUSTER LINKS, which has two per node.
const maxLinks = 20_000

// parseLinks reads the reply of CLUSTER LINKS, an array of maps (flat arrays in RESP2). Unknown fields are ignored.
func parseLinks(reply resp.Value) ([]Link, error) {
	if err := reply.Err(); err != nil {
		return nil, err
	}
	if reply.Kind != resp.Array || len(reply.Elems) > maxLinks {
		return nil, fmt.Errorf("CLUSTER LINKS: a reply of %d elements, want an array of at most %d", len(reply.Elems),
			maxLinks)
	}
	links := make([]Link, 0, len(reply.Elems))
	for _, e := range reply.Elems {
		var l Link
		for key, value := range e.Pairs() {
			n, _ := value.Integer()
			switch key.Text() {
			case "direction":
				l.Outgoing = value.Text() == "to"
			case "node":
				l.NodeID = value.Text()
			case "create-time":
				l.CreatedAt = time.UnixMilli(n)
			case "send-buffer-allocated":
				l.BufferBytes = n
			case "send-buffer-used":
				l.BufferUsedBytes = n
			}
		}
		links = append(links, l)
	}
	return links, nil
}

// maxSlowCalls bounds the entries read from SLOWLOG.
const maxSlowCalls = 128

// parseSlowCalls reads SLOWLOG GET, [id, second, microseconds, arguments, address, name] since Redis 4, and keeps only
// map refreshes: the arguments of other entries may be user data.
func parseSlowCalls(reply resp.Value) []SlowCall {
	var calls []SlowCall
	for _, e := range reply.Elems[:min(len(reply.Elems), maxSlowCalls)] {
		if len(e.Elems) < 6 || len(e.Elems[3].Elems) < 2 || !strings.EqualFold(e.Elems[3].Elems[0].Text(), "cluster") {
			continue
		}
		sub := strings.ToLower(e.Elems[3].Elems[1].Text())
		second, _ := e.Elems[1].Integer()
		usec, ok := e.Elems[2].Integer()
		if c := cost.Command(sub); !ok || c != cost.Nodes && c != cost.Slots && c != cost.Shards {
			continue
		}
		const day = 24 * 3600 * 1e6 // microseconds; more is no duration of a command
		calls = append(calls, SlowCall{
			At: time.Unix(second, 0), Took: time.Duration(min(max(0, usec), day)) *
				time.Microsecond, Command: "cluster|" + sub,
			Addr: e.Elems[4].Text(), Name: e.Elems[5].Text(),
		})
	}
	return calls
}
