// Package compare holds two recordings against each other: before and after a change, a good day and a bad one; and the
// parts of one, by time. It is a pure function of what they hold.
package compare

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// Side is one recording, as far as it is compared.
type Side struct {
	// Diagnosis is its verdict.
	Diagnosis verdict.Diagnosis

	intervals map[string][]interval // by population: the parts of the watch, in order of time
	callers   map[string]float64    // by name of the program or host: calls per second
	settings  []configuration       // of the nodes that showed it, in their order
	versions  map[string]string     // of the server, of slowpath, and of client libraries
	// failed are calls of all callers that failed, and connections that were refused; attempts are all of them.
	failed, attempts int
}

// configuration is the CONFIG of a node.
type configuration struct {
	node   string
	values map[string]string
}

// interval is a part of a watch.
type interval struct {
	calls  *hdrhistogram.Histogram // of nanoseconds
	ns     int64                   // how much of it was watched
	stalls int                     // of the users that began in it
}

// intervals is into how many parts a watch is divided: each is one measurement. The seconds of one watch are too much
// alike to be measurements of their own.
// Bound: guess, twenty; watches of one system, one after the other, would measure how alike parts of one are.
const intervals = 20

// SideOf sums up a recording. version is that of the program that judges.
func SideOf(rec *recording.Recording, version string) Side {
	c := facts.New(rec)
	d := verdict.Of(c, version)
	s := Side{
		Diagnosis: d, intervals: map[string][]interval{}, callers: map[string]float64{},
		versions: map[string]string{},
	}
	for _, p := range d.Populations {
		s.intervals[p.Name] = intervalsOf(rec, p, c.Ledger.Stalls)
	}
	for _, n := range c.Nodes {
		for _, caller := range caller.Callers(n) {
			name, _, _ := strings.Cut(caller.Name, "[")
			s.callers[name] += float64(caller.AppCalls()) / c.Seconds()
		}
	}
	s.countFailures(c)
	s.readSettings(rec)
	s.readVersions(rec, c)
	return s
}

// countFailures counts what the verdict of a recording counts as failed.
func (s *Side) countFailures(c *facts.Case) {
	own := nodes.OwnFailuresOf(c)
	s.failed, s.attempts = own.Failed, own.Calls
	for _, p := range s.Diagnosis.Populations {
		if p.Name == account.OfUsers {
			s.failed, s.attempts = s.failed+p.FailedCalls, s.attempts+p.Calls+p.FailedCalls
		}
	}
	for _, n := range c.Nodes {
		refused := nodes.LostCallsOf(n, facts.Span{FromNs: c.StartNs, ToNs: c.EndNs}).RefusedDials
		s.failed, s.attempts = s.failed+refused, s.attempts+refused
	}
}

// histogramsOf says which histograms hold the calls of a population: their source, and how their names begin; timed is
// false for commands of SLOWLOG alone.
func histogramsOf(p verdict.Population) (source, prefix string, timed bool) {
	switch p.Name {
	case account.OfProbe:
		return recording.SourceProbe, "", true
	case account.OfLoad:
		return recording.SourceLoad, recording.LoadFromIntended + " ", true
	case account.OfSlowlog:
		return "", "", false
	}
	return recording.SourceTap, p.At + " ", true
}

// intervalsOf are the calls of a population by time, those at the clients' end as long as their threads waited. None:
// the recording is so long that it holds sums only, or has commands of SLOWLOG alone.
func intervalsOf(rec *recording.Recording, p verdict.Population, stalls []int64) []interval {
	source, prefix, timed := histogramsOf(p)
	if !timed {
		return nil
	}
	start, end := rec.Window()
	long := max((end-start)/intervals, int64(time.Second))
	out := make([]interval, max((end-start)/long, 1))
	for i := range out {
		out[i].ns = rec.WatchedNs(start+int64(i)*long, start+int64(i+1)*long)
	}
	for _, ns := range stalls {
		if i := (ns - start) / long; ns >= start && int(i) < len(out) {
			out[i].stalls++
		}
	}
	sums := make([]map[string]*hdrhistogram.Histogram, len(out)) // by side
	for _, h := range rec.Histograms {
		i := (h.Second*1e9 - start) / long
		if h.Source != source || signOf(h.Op, prefix) == 0 || h.Second*1e9 < start || int(i) >= len(out) {
			continue
		}
		one, err := hdrhistogram.Decode(h.HDR)
		if err != nil {
			return nil // summed up while it was read
		}
		side, _, _ := strings.Cut(h.Op, " ")
		if strings.HasPrefix(h.Op, prefix) {
			side = recording.Client
		}
		if sums[i] == nil {
			sums[i] = map[string]*hdrhistogram.Histogram{}
		}
		if sums[i][side] == nil {
			sums[i][side] = hdrhistogram.New(one.LowestTrackableValue(), one.HighestTrackableValue(),
				int(one.SignificantFigures()))
		}
		sums[i][side].Merge(one)
	}
	for i := range out {
		out[i].calls = recording.FeltAtClients(sums[i])
	}
	return slices.DeleteFunc(out, func(v interval) bool {
		return v.ns == 0 || v.calls == nil || v.calls.TotalCount() == 0
	})
}

// readSettings reads the configurations of the servers.
func (s *Side) readSettings(rec *recording.Recording) {
	for _, node := range rec.Nodes() {
		snap, ok := rec.SnapshotOf(recording.SourceServer, node, "config")
		if !ok {
			continue
		}
		config := map[string]string{}
		if json.Unmarshal([]byte(snap.Body), &config) != nil {
			continue // a damaged snapshot is as good as none
		}
		s.settings = append(s.settings, configuration{node, config})
	}
}

func (s *Side) readVersions(rec *recording.Recording, c *facts.Case) {
	for _, v := range []struct{ what, is string }{
		{"server", rec.Meta[recording.MetaServer]},
		{"slowpath that recorded", rec.Meta[recording.MetaVersion]},
		{"kind of target", rec.Meta[recording.MetaKind]},
	} {
		if v.is != "" {
			s.versions[v.what] = v.is
		}
	}
	libraries := map[string]map[string]bool{}
	for _, p := range hosts.Processes(c) {
		for _, l := range p.Libraries {
			of := l.Name + " of " + p.Comm
			if libraries[of] == nil {
				libraries[of] = map[string]bool{}
			}
			libraries[of][l.Version] = true
		}
	}
	for of, versions := range libraries {
		s.versions[of] = strings.Join(slices.Sorted(maps.Keys(versions)), ", ")
	}
}

// seconds is how much of an interval was watched.
func (v interval) seconds() float64 { return float64(v.ns) / 1e9 }

// repeats are the measurements of a metric, one of each interval.
func repeats(all []interval, of func(interval) float64) []float64 {
	out := make([]float64, 0, len(all))
	for _, v := range all {
		if value := of(v); !math.IsNaN(value) {
			out = append(out, value)
		}
	}
	return out
}

// percent is a share as text, for the names of what differs.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'g', -1, 64) + " %"
}
