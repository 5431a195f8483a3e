package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// States of Watched.
const (
	StateWatched     = "watched"
	StateUnreachable = "unreachable"
	StateStarting    = "starting"
)

type overviewView struct {
	Class, Link, Summary string
	Numbers              []string
	Ranges               []link
	API, ZoomPath        string
	Incidents            []incidentRow
	Writes               bool
	Health               healthView
}

type healthView struct {
	Problems []string
	Targets  []targetView
	Unseen   []BlindSpot
	Cost     []string
}

type targetView struct{ Class, Said string }

const (
	overviewList  = 10 // incidents
	recentlyEnded = 24 * time.Hour
)

// rangeNames are the spans to choose from.
var rangeNames = []struct{ value, name string }{
	{"15m", "15 min"}, {"1h", "1 h"}, {"6h", "6 h"}, {"24h", "24 h"}, {"7d", "7 d"},
}

// overviewPage answers GET /.
func (s *Server) overviewPage(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.overviewParameters(r); err != nil {
		return err
	}
	all := boundIncidents(s.o.Store.List(incidents.Query{Limit: overviewList}))
	h := s.health()
	v := overviewView{Writes: s.access.writes, Health: s.healthOf(h), Incidents: s.incidentRows(all)}
	v.Class, v.Summary, v.Link = s.nowIn(h, all)
	v.Numbers = s.numbersNow()
	q := r.URL.Query()
	kept := url.Values{}
	for _, name := range []string{"node", "whose"} {
		if q.Get(name) != "" {
			kept.Set(name, q.Get(name))
		}
	}
	chosen := q.Get("range")
	if chosen == "" && q.Get("from") == "" {
		if chosen = "1h"; s.o.Now().Sub(h.Since) < live.DefaultKeep { // there is no more than that
			chosen = "15m"
		}
		q.Set("range", chosen)
	}
	for _, of := range rangeNames {
		to := url.Values{"range": {of.value}}
		for name := range kept {
			to.Set(name, kept.Get(name))
		}
		v.Ranges = append(v.Ranges, link{of.name, "/?" + to.Encode(), of.value == chosen})
	}
	api := url.Values{}
	for _, name := range []string{"range", "from", "to", "node", "whose"} {
		if q.Get(name) != "" {
			api.Set(name, q.Get(name))
		}
	}
	v.API = "/api/v1/overview?" + api.Encode()
	v.ZoomPath = "/?" + kept.Encode()
	return s.page(w, r, "overview", "slowpath: "+v.Summary, v)
}

// nowIn is the sentence at the top: what is wrong now, or was last.
func (s *Server) nowIn(h Health, newest []incidents.Incident) (class, said, path string) {
	if h.Status == Failed {
		if len(h.Problems) > 0 {
			return verdict.Inconclusive, "Nothing is watched: " + bound(h.Problems[0]), ""
		}
		return verdict.Inconclusive, "Nothing is watched", ""
	}
	now := s.o.Now()
	for _, one := range newest {
		path = "/incidents/" + one.ID
		switch {
		case one.State == incidents.StateWatching:
			class, said := verdict.Findings, one.Trigger
			switch one.Verdict { // the first one
			case verdict.Findings:
				said = whatOf(one)
			case verdict.Healthy:
				class = verdict.Inconclusive
			}
			return class, fmt.Sprintf("Since %s: %s", one.Start.UTC().Format("15:04:05"), said), path
		case one.Verdict == verdict.Healthy:
			continue
		case now.Sub(one.Start) > recentlyEnded:
			return verdict.Healthy, "No incident in the last 24 hours", ""
		case one.State == incidents.StateJudging && one.Verdict == "":
			return verdict.Inconclusive, fmt.Sprintf("%s: %s. It is being judged", s.ago(one), one.Trigger), path
		}
		return classOf(one), fmt.Sprintf("%s: %s", s.ago(one), whatOf(one)), path
	}
	return verdict.Healthy, "No incident in the last 24 hours", ""
}

// ago is when an incident was, for people.
func (s *Server) ago(one incidents.Incident) string {
	end := one.End
	if end.IsZero() {
		end = one.Start
	}
	past := max(s.o.Now().Sub(end), 0)
	switch {
	case past < 2*time.Minute:
		return "Just now"
	case past < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", past/time.Minute)
	}
	return fmt.Sprintf("%d hours ago", past/time.Hour)
}

// numbersNow are the calls of the last minute.
func (s *Server) numbersNow() (out []string) {
	end := s.o.View.Complete()
	var users, own live.Latencies
	var slow, failed, first int64
	for _, one := range s.o.View.Seconds(end-mapSeconds, end) {
		if first == 0 {
			first = one.Unix
		}
		if one.Whose == live.Own {
			own.Merge(one.Latencies)
			continue
		}
		users.Merge(one.Latencies)
		slow, failed = slow+one.Slow, failed+one.Failed
	}
	if server := s.o.View.Meta(recording.MetaServer); server != "" {
		out = append(out, bound(strings.Join(s.nodes(), ", ")+" · "+server))
	}
	of, said := users, "Your calls in the last minute"
	if of.Calls() == 0 {
		of, said = own, "slowpath's own calls in the last minute (yours are not seen)"
		slow = own.From(int64(s.o.View.Threshold()))
	}
	if of.Calls() == 0 {
		return append(out, "No call was seen in the last minute.")
	}
	text := fmt.Sprintf("%s: %s/s, p50 %s, p99 %s, worst %s, %s slow (≥ %s)", said,
		format.Rounded(float64(of.Calls())/float64(max(end-first, 1))), format.Duration(of.Quantile(.5)),
		format.Duration(of.Quantile(.99)), format.Duration(of.MaxNs()), format.Thousands(slow),
		format.Brief(s.o.View.Threshold()))
	if failed > 0 {
		text += ", " + format.Thousands(failed) + " failed"
	}
	return append(out, text)
}

// healthOf is what people read of the agent's health.
func (s *Server) healthOf(h Health) healthView {
	var v healthView
	for _, p := range h.Problems {
		v.Problems = append(v.Problems, bound(p))
	}
	for _, t := range h.Targets {
		said := bound(t.Target)
		if t.Found {
			said += ", found on this host"
		}
		if t.State != StateWatched {
			said += ": " + bound(t.State)
		}
		if t.Why != "" {
			said += " — " + bound(t.Why)
		}
		v.Targets = append(v.Targets, targetView{classOfTarget(t.State), said})
	}
	for _, b := range h.Unseen {
		v.Unseen = append(v.Unseen, BlindSpot{bound(b.What), bound(b.Why), bound(b.Enable)})
	}
	v.Cost = costOf(h)
	return v
}

func classOfTarget(state string) string {
	switch state {
	case StateWatched, StateStarting:
		return ""
	}
	return "failed"
}

// costOf says what the agent takes of this host.
func costOf(h Health) (out []string) {
	of := func(part string, budget bool, most string) string {
		if budget {
			return part + ", of at most " + most
		}
		return part
	}
	out = append(out,
		of(format.Percent(h.Cost.CPUShare)+" of a CPU core", h.Cost.CPUBudget > 0, format.Percent(h.Cost.CPUBudget)),
		of(format.Bytes(h.Cost.RSSBytes)+" of memory", h.Cost.RSSBudgetBytes > 0, format.Bytes(h.Cost.RSSBudgetBytes)),
		of(format.Bytes(h.Disk.Bytes)+" of disk", h.Disk.BudgetBytes > 0, format.Bytes(h.Disk.BudgetBytes)))
	if h.Cost.HooksShare > 0 {
		out = append(out, format.Percent(h.Cost.HooksShare)+" of a CPU core by the kernel programs")
	}
	if h.Cost.Reduced != "" {
		out = append(out, "To keep its budget: "+bound(h.Cost.Reduced))
	}
	if !h.Ring.From.IsZero() {
		out = append(out, fmt.Sprintf("Full detail since %s (%s)", h.Ring.From.UTC().Format("15:04:05 UTC"),
			format.Bytes(h.Ring.Bytes)))
	}
	if h.Ring.Lost != "" {
		out = append(out, "Lost: "+bound(h.Ring.Lost))
	}
	return out
}

// count is a number of things.
func count(n int, thing string) string { return format.Count(n, thing) }
