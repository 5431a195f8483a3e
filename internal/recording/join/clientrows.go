package join

import (
	"math"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// clientRows copies rows of the client's recording into the server's: those of its tap, not those of the
// probe, the server source and the host source, which would mix with the server's own.
type clientRows struct {
	server, client *recording.Recording
	clocks         clockBounds
	nodes          map[string]string // names of nodes in the client's recording -> in the server's
	usedSubjects   map[string]bool   // subjects of processes of the server's recording
}

// addCalls adds calls without a counterpart, in the server's time if that is known; made changes their segments.
func (g clientRows) addCalls(calls []int, made func(recording.Call, []recording.Segment) []recording.Segment) {
	next := int64(0)
	for _, c := range g.server.Calls {
		next = max(next, c.ID)
	}
	for _, i := range calls {
		c := g.client.Calls[i]
		segs := made(c, g.client.SegmentsOf(c.ID))
		next++
		shift := g.clocks.shift(c.IntendedNs)
		c.ID, c.Node = next, g.nodeName(c.Node)
		c.IntendedNs, c.StartNs, c.EndNs = c.IntendedNs+shift, c.StartNs+shift, c.EndNs+shift
		moved := make([]recording.Segment, len(segs))
		for j, s := range segs {
			s.FromNs, s.ToNs = s.FromNs+shift, s.ToNs+shift
			moved[j] = s
		}
		g.server.SetSegments(c.ID, nil) // those of no call, in a damaged recording
		g.server.Call(c, moved...)
	}
}

func (g clientRows) nodeName(name string) string {
	if to, ok := g.nodes[name]; ok {
		return to
	}
	return name
}

// ofClients are the ends of histograms that only the clients' host has.
var ofClients = map[string]bool{
	recording.Client: true, recording.AwaitedCalls: true, recording.Operations: true, recording.Dialled: true,
}

// addEvidence adds what the tap saw of the clients' end other than calls. It returns how many processes were
// left out because the server's host has other processes with the same number.
func (g clientRows) addEvidence() (clash int) {
	for _, h := range g.client.Histograms {
		if side, _, _ := strings.Cut(h.Op, " "); h.Source == recording.SourceTap && ofClients[side] {
			h.Node, h.Second = g.nodeName(h.Node), h.Second+int64(math.Round(float64(g.clocks.shift(h.Second*1e9))/1e9))
			g.server.Histogram(h)
		}
	}
	g.addCounters()
	for _, e := range g.client.Events {
		if e.Kind == recording.KindBlindSpot && e.Source == recording.SourceTap {
			g.server.Event(e)
		}
	}
	g.addProfiles()
	if g.clocks.unusable {
		return 0
	}
	clashes := map[string]bool{}
	noClash := func(subject string) bool {
		if g.usedSubjects[subject] {
			clashes[subject] = true
		}
		return !g.usedSubjects[subject]
	}
	for _, e := range g.client.Events {
		ofTap := e.Source == recording.SourceTap || e.Kind == recording.KindSegmentSizes // the sockets are the callers'
		if ofTap && (strings.HasPrefix(e.Subject, recording.ProcessPrefix) &&
			noClash(e.Subject) ||
			g.isConnEvent(e)) {
			e.Subject, e.TimeNs = g.nodeName(e.Subject), e.TimeNs+g.clocks.shift(e.TimeNs)
			g.server.Event(e)
		}
	}
	for _, prefix := range []string{recording.ProcessPrefix, recording.ConnPrefix} {
		for _, subject := range g.client.Subjects(recording.SourceTap, prefix) {
			if prefix == recording.ConnPrefix || noClash(subject) {
				g.addSamples(subject)
			}
		}
	}
	for _, conn := range g.client.UsedConns() {
		for u := range g.client.ConnUses(conn) {
			u.TimeNs += g.clocks.shift(u.TimeNs)
			g.server.ConnUse(conn, u)
		}
	}
	g.addConnEnds()
	return len(clashes)
}

// isConnEvent reports whether the event is about a connection to a node that both recordings have.
func (g clientRows) isConnEvent(e recording.Event) bool {
	return ofConns(e.Kind) && g.nodes[e.Subject] != ""
}

func ofConns(kind string) bool {
	switch kind {
	case recording.KindOpen, recording.KindClose, recording.KindHandshake, recording.KindRetransmit,
		recording.KindSegmentSizes:
		return true
	}
	return false
}

func (g clientRows) addSamples(subject string) {
	for _, name := range g.client.Names(recording.SourceTap, subject, "") {
		for _, p := range g.client.Series(recording.SourceTap, subject, name) {
			g.server.Sample(recording.Sample{
				TimeNs: p.TimeNs + g.clocks.shift(p.TimeNs), Source: recording.SourceTap,
				Subject: subject, Name: name, Value: p.Value,
			})
		}
	}
}

// addConnEnds adds the snapshots with the node and process of each connection.
func (g clientRows) addConnEnds() {
	for _, s := range g.client.Snapshots {
		if s.Source != recording.SourceTap || s.Name != recording.SnapshotEnds {
			continue
		}
		ends, ok := recording.BodyOf[recording.ConnEnds](s)
		if !ok {
			continue
		}
		ends.Node = g.nodeName(ends.Node)
		s.TimeNs, s.Body = s.TimeNs+g.clocks.shift(s.TimeNs), recording.Detail(ends)
		g.server.Snapshot(s)
	}
}

// addCounters adds up the counters of the kernel programs of both hosts.
func (g clientRows) addCounters() {
	_, end := g.server.Window()
	for _, name := range g.client.Names(recording.SourceTap, recording.SubjectSelf, "tap.") {
		more, _ := g.client.Series(recording.SourceTap, recording.SubjectSelf, name).Last()
		have, _ := g.server.Series(recording.SourceTap, recording.SubjectSelf, name).Last()
		g.server.Sample(recording.Sample{
			TimeNs: end, Source: recording.SourceTap, Subject: recording.SubjectSelf,
			Name: name, Value: have + more,
		})
	}
}

// processSubjects are the subjects of all processes in a recording.
func processSubjects(r *recording.Recording) map[string]bool {
	out := map[string]bool{}
	for _, source := range []string{recording.SourceTap, recording.SourceHost} {
		for _, s := range r.Subjects(source, recording.ProcessPrefix) {
			out[s] = true
		}
	}
	for _, e := range r.Events {
		if strings.HasPrefix(e.Subject, recording.ProcessPrefix) {
			out[e.Subject] = true
		}
	}
	for _, c := range r.Calls {
		if pid, ok := recording.PIDOf(c.Client); ok {
			out[recording.ProcessPrefix+strconv.Itoa(pid)] = true
		}
	}
	return out
}
