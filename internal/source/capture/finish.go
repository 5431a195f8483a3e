package capture

import (
	"fmt"
	"strconv"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// why says why there are no calls.
func (a *analysis) why() string {
	s := a.seen
	switch {
	case s.outOfTime == s.packets && s.packets > 0:
		return fmt.Sprintf("none of its %d packets has a time: capture with tcpdump -w FILE tcp port 6379", s.packets)
	case s.tcp == 0 && s.packets > 0:
		return fmt.Sprintf("none of its %d packets is a TCP segment; capture with: tcpdump -w FILE tcp port 6379",
			s.packets)
	case 4*s.cut > s.data:
		return fmt.Sprintf("%d of its %d TCP segments with data are cut, and what is left of them is too little: "+
			"capture whole packets, tcpdump -s 0", s.cut, s.data)
	case s.oneWay > 0:
		return "it has the requests alone, and not the replies: capture both directions"
	case s.tls > 0:
		return "its connections are under TLS, and packets do not show what is in them: use slowpath doctor HOST:PORT"
	}
	return fmt.Sprintf("none of the connections in its %d TCP segments has a request with its reply; capture with: "+
		"tcpdump -w FILE tcp port 6379", s.tcp)
}

// vantageText says where the capture was made.
func (a *analysis) vantageText() string {
	return vantageNames[a.usualVantage()]
}

// finish records what the capture is as a whole.
func (a *analysis) finish(truncated string) {
	for _, c := range a.conns {
		if !c.ended && c.client != nil {
			c.settleCalm()
		}
	}
	a.writeHistograms()
	for _, c := range a.conns {
		c.countOneWay()
		if !c.ended && !c.foreign && c.proven && c.client != nil {
			c.open()
			c.publish(max(c.lastNs, 1))
			a.seen.unpaired += int64(len(c.tentative))
		}
	}
	for _, n := range a.nodes {
		for name, count := range n.errors {
			a.sink.Sample(recording.Sample{
				TimeNs: a.endNs, Source: recording.SourceTap, Subject: n.address.String(), Name: name, Value: count,
			})
		}
	}
	a.sink.Sample(recording.Sample{ // as the tap counts them
		TimeNs: a.endNs, Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: series.TapUnaligned.Name,
		Value: float64(a.seen.unpaired + a.seen.oneWay),
	})
	a.writeSizes()
	a.meta()
	a.blindSpots(truncated)
	for _, u := range a.unseen() {
		if u.Count > 0 {
			a.sink.Event(recording.Event{
				TimeNs: a.endNs, Source: recording.SourceTap, Subject: recording.SubjectSelf,
				Kind: recording.KindUnseen, Detail: recording.Detail(u),
			})
		}
	}
}

func (a *analysis) meta() {
	names := a.nodeNames()
	set := a.sink.SetMeta
	set(recording.MetaStart, strconv.FormatInt(max(a.startNs, 1), 10))
	set(recording.MetaEnd, strconv.FormatInt(max(a.endNs, a.startNs, 1), 10))
	set(recording.MetaNodes, recording.Detail(names))
	set(recording.MetaKind, "unknown")
	set(recording.MetaSlow, "auto")
	set(recording.MetaVersion, a.Version)
	if len(names) > 0 {
		set(recording.MetaTarget, names[0])
	}
	status := func(name string, used bool, why string) {
		set(recording.MetaSource+name, recording.Detail(recording.SourceStatus{Name: name, Used: used, Why: why}))
	}
	status(recording.SourceCapture, true, "")
	const why = "this is a packet capture: "
	status(recording.SourceTap, false, why+"what threads did is not in packets")
	status(recording.SourceServer, false, why+"nobody asked the server (INFO, SLOWLOG)")
	status(recording.SourceHost, false, why+"the files of the server's host were not read")
	status(recording.SourceProbe, false, why+"slowpath made no calls of its own")
}

// blindSpots says what a capture never shows.
func (a *analysis) blindSpots(truncated string) {
	blind := func(what, why, enable string) {
		a.sink.Event(recording.Event{
			TimeNs: a.startNs, Source: recording.SourceTap, Kind: recording.KindBlindSpot,
			Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
		})
	}
	target := strings.Join(a.nodeNames()[:min(len(a.nodes), 1, len(a.nodeNames()))], "")
	blind("why a server or a client did not answer at once",
		"the capture was made "+a.vantageText()+": it has packets, and not what processes did",
		"on the server's host, as root: slowpath doctor "+target)
	if truncated != "" {
		blind("what came after the last whole packet", truncated, "a capture that was ended cleanly (SIGINT)")
	}
}

// unseen is what could not be followed or kept.
func (a *analysis) unseen() []recording.Unseen {
	s := a.seen
	of := func(n, of int64) (float64, float64) { return float64(n), float64(n) + float64(of) }
	list := []recording.Unseen{}
	add := func(what string, count, whole int64, why, enable string, counted bool) {
		n, all := of(count, whole)
		list = append(list, recording.Unseen{
			What: what, Count: n, Of: all, Why: why, Enable: enable, Counted: counted,
		})
	}
	add("calls whose reply could not be matched", s.unpaired+s.oneWay, s.calls,
		"their connection was there before the capture, or the capture does not have some of its bytes",
		"capture whole packets (tcpdump -s 0), with a larger buffer (-B), in both directions", false)
	add("packets", s.dropped, s.packets, "who made the capture dropped them: it was too slow",
		"capture less (a host, a port, an interface), or with a larger buffer (tcpdump -B)", false)
	add("packets of connections that were not followed", s.unfollowed, s.tcp-s.unfollowed,
		"there were more connections or servers than are followed", "a filter: tcp port 6379", false)
	add("packets with a time that cannot be", s.outOfTime, s.packets-s.outOfTime, "the file is damaged", "", false)
	add("connections under TLS", s.tls, s.conns, "packets do not show what is in them",
		"slowpath doctor HOST:PORT, as root at either end", false)
	add("connections from where they subscribe on", s.subscribed, s.conns, "what is published has no request", "", true)
	add("names of commands", s.opsFull, s.calls, "there were more different commands than are told apart", "", true)
	return list
}
