package server

import (
	"strings"

	"slowpath/internal/wire/resp"
)

// spike is a sample of the latency monitor: the longest time of an event within a second of the server's clock.
type spike struct {
	second int64
	millis int64
}

// latest is a line of LATENCY LATEST: the newest sample of an event.
type latest struct {
	event string
	spike
}

// maxLatencyEvents bounds LATENCY LATEST; servers have about 25 events.
const maxLatencyEvents = 200

// parseLatest reads LATENCY LATEST: arrays of event, time, latest and longest latency, and more since valkey 8.1.
func parseLatest(v resp.Value) []latest {
	var out []latest
	for _, e := range v.Elems[:min(len(v.Elems), maxLatencyEvents)] {
		if len(e.Elems) < 3 {
			continue
		}
		event := e.Elems[0].Text()
		if s, ok := parseSpike(e.Elems[1], e.Elems[2]); ok && isEventName(event) {
			out = append(out, latest{event, s})
		}
	}
	return out
}

// parseHistory reads LATENCY HISTORY: pairs of time and latency, oldest first, at most 160.
func parseHistory(v resp.Value) []spike {
	var out []spike
	for _, e := range v.Elems {
		if len(e.Elems) < 2 {
			continue
		}
		if s, ok := parseSpike(e.Elems[0], e.Elems[1]); ok {
			out = append(out, s)
		}
	}
	return out
}

func parseSpike(second, millis resp.Value) (spike, bool) {
	s, ok1 := second.Integer()
	ms, ok2 := millis.Integer()
	return spike{s, ms}, ok1 && ok2 && s >= 0 && s <= maxSeconds && ms >= 0 && ms <= maxSeconds*1000
}

// isEventName recognises names such as "aof-fsync-always", which can be an argument of LATENCY HISTORY.
func isEventName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	return s != "" && len(s) <= 40 && strings.Trim(s, letters) == ""
}
