package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// recorded is what the hosts of a recording pushed: as long before an incident as with it.
type recorded struct {
	hosts    []string
	network  string        // "198.18.77.", of which all have addresses
	length   time.Duration // of each of the two, whole minutes
	quiet    take
	incident take
}

// take is what was pushed in one time, in its order.
type take struct {
	from    int64 // Unix nanoseconds, a whole minute
	scripts []*script
}

// readRecorded reads a recording: so much of each of its two parts at most, where that is not 0.
func readRecorded(path string, most time.Duration) (r recorded, err error) {
	all, err := readPushes(path)
	if err != nil {
		return r, err
	}
	at := slices.IndexFunc(all, func(p push) bool { return p.Signal == incident })
	if at < 0 {
		return r, errors.New("the recording has no incident: scripts/fleet-scale record makes another one")
	}
	begin := time.Unix(0, all[at].At).Truncate(time.Minute)
	before, after := begin.Sub(time.Unix(0, all[0].At)), time.Unix(0, all[len(all)-1].At).Sub(begin)
	r.length = min(before, after+time.Second).Truncate(time.Minute)
	if r.length < time.Minute {
		return r, fmt.Errorf("the recording has %s before its incident and %s of it: it needs a minute of each",
			before.Round(time.Second), after.Round(time.Second))
	}
	if most > 0 {
		r.length = min(r.length, most)
	}
	r.quiet.from, r.incident.from = begin.Add(-r.length).UnixNano(), begin.UnixNano()
	calls := map[string]callKey{}
	for _, p := range all {
		if p.Signal == incident {
			continue
		}
		s, err := newScript(p, calls)
		if err != nil {
			return r, err
		}
		if !slices.Contains(r.hosts, s.host) {
			r.hosts = append(r.hosts, s.host)
		}
		if i := strings.LastIndexByte(s.ip, '.'); i > 0 {
			r.network = s.ip[:i+1]
		}
		switch {
		case p.At < r.quiet.from || p.At >= r.incident.from+int64(r.length):
		case p.At < r.incident.from:
			r.quiet.scripts = append(r.quiet.scripts, s)
		default:
			r.incident.scripts = append(r.incident.scripts, s)
		}
	}
	slices.Sort(r.hosts)
	if r.network == "" {
		return r, errors.New("no agent of the recording says its address (host.ip): record one of this version")
	}
	return r, nil
}

// row is one of a table that a push makes. Rows with the same key collapse.
type row struct {
	table string
	key   string
	at    int64 // part of the key; 0: it is not
	laps  bool  // the key differs by the lap
	sum   int64 // what a sum over the table adds
	trace string
	side  string // of a call
}

// tally is how many rows a table has, and a sum over them.
type tally struct{ rows, sum int64 }

// tables are those whose rows are compared with what was sent, and what is summed up.
var tables = map[string]string{
	"call_row": "ns", "minute_row": "calls", "edge_row": "calls", "incident_row": "0", "finding_row": "0",
	"change_row": "0",
}

// turn is one lap of a cell.
type turn struct {
	take
	part
}

// turns are the laps of a cell, from a time on: with the incident in the first one, or without.
func (r recorded) turns(cell, laps int, base time.Time, withIncident bool) (out []turn) {
	for lap := range laps {
		of := r.quiet
		if withIncident && lap == 0 {
			of = r.incident
		}
		shift := base.Add(time.Duration(lap) * r.length).Sub(time.Unix(0, of.from))
		out = append(out, turn{of, r.newPart(cell, lap, shift)})
	}
	return out
}

// tallies are the rows that turns of one cell make.
func tallies(turns []turn) map[string]tally {
	seen, out := map[string]bool{}, map[string]tally{}
	for _, t := range turns {
		for _, s := range t.scripts {
			for _, w := range s.rows {
				at, lap := int64(0), 0
				if w.at != 0 {
					at = w.at + t.shift
				}
				if w.laps {
					lap = t.lap
				}
				key := fmt.Sprintln(w.table, s.host, w.key, at, lap)
				if seen[key] {
					continue
				}
				seen[key] = true
				n := out[w.table]
				out[w.table] = tally{n.rows + 1, n.sum + w.sum}
			}
		}
	}
	return out
}

// pairsOf is how many calls were seen at both ends.
func pairsOf(turns []turn) (n int64) {
	for _, t := range turns {
		ends := map[string]map[string]bool{}
		for _, s := range t.scripts {
			for _, w := range s.rows {
				if w.trace == "" {
					continue
				}
				if ends[w.trace] == nil {
					ends[w.trace] = map[string]bool{}
				}
				ends[w.trace][w.side] = true
			}
		}
		for _, sides := range ends {
			if sides[recording.Client] && sides[recording.Server] {
				n++
			}
		}
	}
	return n
}

// bytes is how much a host pushed in a minute on average, as it was on the wire, and as protobuf, by signal.
func (t take) bytes(hosts int, length time.Duration) (wire float64, plain map[string]float64) {
	per := float64(hosts) * length.Minutes()
	plain = map[string]float64{}
	for _, s := range t.scripts {
		wire += float64(s.Wire) / per
		plain[s.Signal] += float64(len(s.Body)) / per
	}
	return wire, plain
}
