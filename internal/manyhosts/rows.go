package manyhosts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// Bounds of what is taken of a recording.
const (
	maxCalls   = 20_000 // slow calls, the slowest
	maxMinutes = 60 * 24
)

// origin says where a recording comes from, as its path does: "cluster=shop/…/host=web-1/20261128T220123Z-1/…".
type origin struct{ cluster, host, id string }

func originOf(path string, rec *recording.Recording) (o origin) {
	name := strings.TrimSuffix(filepath.Base(path), ".slowpath")
	o = origin{host: rec.Meta[recording.MetaHost], id: name}
	parts := strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
	if name == "recording" {
		o.id = parts[len(parts)-1] // the directory of an incident
	}
	for _, part := range parts {
		if key, value, ok := strings.Cut(part, "="); ok && key == "cluster" {
			o.cluster = nameIn(value)
		} else if ok && key == "host" {
			o.host = nameIn(value)
		}
	}
	o.host = cmp.Or(o.host, name)
	return o
}

// nameIn is a name that is a part of a key or a path, where agents encode it; "-" stands for none.
func nameIn(part string) string {
	name, err := url.PathUnescape(part)
	switch {
	case part == "-":
		return ""
	case err != nil:
		return part
	}
	return name
}

// node is the name of a node for others: an address of the loopback device is one of its host.
func (o origin) node(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err == nil && a.Addr().IsLoopback() || strings.HasPrefix(address, "/") {
		return o.host + " " + address
	}
	return address
}

func (o origin) nodes(all []string) string {
	out := []string{}
	for _, n := range all {
		out = append(out, o.node(n))
	}
	return jsonOf(out)
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v) // texts and numbers
	return string(b)
}

// rows of a table, each without its file.
type rows map[string][][]any

func (r rows) add(table string, values ...any) { r[table] = append(r[table], values) }

// rowsOf are the rows of a recording with its diagnosis. How many slow calls were left out is told.
func rowsOf(o origin, c *facts.Case, d verdict.Diagnosis) (out rows, left int) {
	out = rows{}
	out.add("host_row", o.cluster, o.host, "slowpath", d.Version)
	if kernel := c.Rec.Meta[recording.MetaKernel]; kernel != "" {
		out.add("host_row", o.cluster, o.host, "kernel", kernel)
	}
	var addresses []string
	_ = json.Unmarshal([]byte(c.Rec.Meta[recording.MetaAddresses]), &addresses) // earlier ones have none
	for _, a := range addresses {
		out.add("address_row", o.cluster, o.host, a)
	}
	left = out.calls(o, c)
	view := replayed(c.Rec, time.Duration(d.Latency.SlowThresholdNs))
	out.minutes(o, c, view, d)
	out.incident(o, c, d)
	for _, e := range view.TakeEdges() {
		out.add("edge_row", o.cluster, o.host, c.StartNs, c.EndNs-c.StartNs, e.Caller, e.Program.Unit,
			e.Program.Container, e.Program.Pod, e.Library, o.node(e.Node), e.Calls, e.Slow, e.LostNs)
	}
	for _, change := range d.Changes {
		out.add("change_row", o.cluster, o.host, change.Time.UnixNano(), change.WithinNs, string(change.Kind),
			o.node(change.Node), change.Text, strings.Join(change.By, ", "))
	}
	return out, left
}

// calls adds the slow calls, at most maxCalls, and tells how many were left out.
func (r rows) calls(o origin, c *facts.Case) (left int) {
	slow := slices.Clone(c.Ledger.Slow)
	slices.SortStableFunc(slow, func(a, b account.Account) int { return cmp.Compare(b.DurationNs(), a.DurationNs()) })
	for _, a := range slow[:min(len(slow), maxCalls)] {
		call := a.Call
		whose := "users"
		if call.Source == recording.SourceProbe {
			whose = "slowpath"
		}
		id, ok := recording.CallID(o.cluster, call)
		if !ok { // nobody else saw it
			id = sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", o.host, call.Conn, call.Op, call.EndNs))
		}
		trace := hex.EncodeToString(id[:16])
		ip := call.Conn
		if client, err := netip.ParseAddrPort(call.Conn); err == nil {
			ip = client.Addr().Unmap().String()
		}
		longest := longestOf(a.Segments)
		r.add("call_row", o.cluster, o.host, trace, cmp.Or(call.Side, recording.Client), call.IntendedNs, a.FeltNs(),
			whose, call.Op, o.node(call.Node), call.Conn, ip, int64(call.Seq), call.Client, call.RequestBytes,
			call.ReplyBytes, call.Error, 1.0, strings.TrimSpace(longest.Actor+" "+longest.State), longest.Culprit)
	}
	return max(len(slow)-maxCalls, 0)
}

func longestOf(all []account.Segment) (longest account.Segment) {
	for _, s := range all {
		if s.ToNs-s.FromNs > longest.ToNs-longest.FromNs {
			longest = s
		}
	}
	return longest
}

// replayed is what a live view shows at the end of a watch.
func replayed(r *recording.Recording, slow time.Duration) *live.View {
	fromNs, toNs := r.Window()
	end := toNs + int64(time.Minute) // all seconds are complete
	v := live.New(live.Options{Keep: time.Duration(end-fromNs) + time.Minute, Slow: slow, Clock: stopped(end)})
	for _, s := range r.Snapshots {
		if s.Name == recording.SnapshotProgram || s.Name == recording.SnapshotEnds {
			v.Snapshot(s)
		}
	}
	for _, e := range r.Events {
		if e.Kind == recording.KindOpen || e.Kind == recording.KindHandshake {
			v.Event(e)
		}
	}
	for _, h := range r.Histograms {
		v.Histogram(h)
	}
	for _, c := range r.Calls {
		v.Call(c, r.SegmentsOf(c.ID)...)
	}
	for _, client := range r.UsedConns() {
		for u := range r.ConnUses(client) {
			v.ConnUse(client, u)
		}
	}
	for _, node := range r.Nodes() {
		for _, name := range r.Names(recording.SourceTap, node, recording.CallsFromPrefix) {
			for _, p := range r.Series(recording.SourceTap, node, name) {
				v.Sample(recording.Sample{
					TimeNs: p.TimeNs, Source: recording.SourceTap, Subject: node, Name: name, Value: p.Value,
				})
			}
		}
	}
	for _, e := range r.Events {
		if e.Kind == recording.KindClose {
			v.Event(e)
		}
	}
	return v
}

// stopped is a clock that stands still.
type stopped int64

// Now implements clock.Clock.
func (s stopped) Now() int64 { return int64(s) }

// minutes adds the minutes of the watch, at most maxMinutes. Those at its ends are not whole.
func (r rows) minutes(o origin, c *facts.Case, v *live.View, d verdict.Diagnosis) {
	missed := slices.ContainsFunc(c.Rec.Events, func(e recording.Event) bool {
		u := recording.DetailOf[recording.Unseen](e)
		return e.Kind == recording.KindUnseen && !u.Counted && u.Count > 0
	})
	first, last := c.StartNs/60e9*60, c.EndNs/1e9
	for at, n := first, 0; at <= last && n < maxMinutes; at, n = at+60, n+1 {
		type population struct {
			node string
			live.Whose
		}
		type sum struct {
			live.Latencies
			side                string
			calls, slow, failed int64
		}
		sums := map[population]*sum{}
		for _, s := range v.Seconds(at, at+60) {
			k := population{s.Node, s.Whose}
			if sums[k] == nil {
				sums[k] = &sum{side: s.Side}
			}
			of := sums[k]
			of.calls, of.slow, of.failed = of.calls+s.Calls, of.slow+s.Slow, of.failed+s.Failed
			of.Merge(s.Latencies)
			if s.Side == recording.Server {
				of.side = s.Side
			}
		}
		whole := at*1e9 >= c.StartNs && (at+60)*1e9 <= c.EndNs && !missed
		for k, s := range sums {
			whose := "users"
			if k.Whose == live.Own {
				whose = "slowpath"
			}
			r.add("minute_row", o.cluster, o.host, at*1e9, o.node(k.node), whose, s.side, c.Rec.ServerOf(k.node),
				s.calls, s.slow, s.failed, d.Latency.SlowThresholdNs, s.MaxNs(), whole, jsonOf(bucketsOf(s.Latencies)))
		}
	}
}

// bucketsOf are the calls by recording.ExponentialBucket.
func bucketsOf(l live.Latencies) (out [][2]int64) {
	l.Each(func(fromNs, toNs, calls int64) {
		seconds := max(float64(fromNs)+float64(toNs), 1) / 2e9
		at := int64(recording.ExponentialBucket(seconds))
		if n := len(out); n > 0 && out[n-1][0] == at {
			out[n-1][1] += calls
			return
		}
		out = append(out, [2]int64{at, calls})
	})
	return out
}

// incident adds what a watch was judged to be, with its findings.
func (r rows) incident(o origin, c *facts.Case, d verdict.Diagnosis) {
	slow, failed := int64(d.Latency.SlowCalls), int64(0)
	for _, p := range d.Populations {
		if p.Name == "users" {
			slow, failed = int64(p.SlowCalls), int64(p.FailedCalls)
		}
	}
	first := ""
	if len(d.Findings) > 0 {
		first = d.Findings[0].Cause
	}
	callers := []string{}
	for _, caller := range d.Callers {
		if caller.SlowCalls > 0 {
			callers = append(callers, caller.Name)
		}
	}
	ns := c.EndNs - c.StartNs
	r.add("incident_row", o.cluster, o.host, o.id, c.StartNs, ns, "judged", d.Verdict, first, d.Summary, slow, failed,
		o.nodes(d.Target.Nodes), jsonOf(callers))
	for i, f := range d.Findings {
		var evidence, fix, culprit string
		if len(f.Evidence) > 0 {
			evidence = f.Evidence[0].Text
		}
		if len(f.Fix) > 0 {
			fix = f.Fix[0]
		}
		if len(f.Culprits) > 0 {
			culprit = f.Culprits[0].Text
		}
		r.add("finding_row", o.cluster, o.host, o.id, int64(i), c.StartNs, ns, f.Cause, f.Because, f.ExcessShare,
			f.Confidence, string(f.Grade), int64(f.SlowCalls), f.Title, evidence, fix, culprit, o.nodes(f.Nodes))
	}
}
