package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// maxIdleCallers bounds the tables; the JSON has all.
const maxIdleCallers = 10

// thens are the columns of a table.
var thens = []connection.Then{
	connection.UsedAgain, connection.NoReply, connection.ResetWhenUsed, connection.ClosedByClient,
	connection.ClosedByServer,
	connection.ClosedBetween, connection.ClosedByNeither,
}

// head is the head of a column.
func (c IdleCaller) head(t connection.Then) string {
	switch t {
	case connection.UsedAgain:
		return "GOOD"
	case connection.NoReply:
		return "NO REPLY"
	case connection.ResetWhenUsed:
		return "RESET"
	case connection.ClosedByClient:
		return "BY CLIENT"
	case connection.ClosedByServer:
		return "BY " + strings.ToUpper(c.Peer)
	case connection.ClosedBetween:
		return "BETWEEN"
	default:
		return "ENDED"
	}
}

// text says what came after an idle time, in a sentence.
func (c IdleCaller) text(t connection.Then) string {
	return map[connection.Then]string{
		connection.UsedAgain:       "used again and good",
		connection.NoReply:         "used again, and ended without a reply",
		connection.ResetWhenUsed:   "reset when it was used again",
		connection.ClosedByClient:  "closed by the client",
		connection.ClosedByServer:  "closed by the " + c.Peer,
		connection.ClosedBetween:   "closed by something between the two ends",
		connection.ClosedByNeither: "ended, closed by neither end",
	}[t]
}

// Text writes the tables for a person.
func (d Connections) Text(w io.Writer, s layout.Style) error {
	p := newPage(s)
	if len(d.Callers) == 0 {
		p.Line("no connection was seen: it takes the tap (record as root)")
		return p.To(w, "the connections")
	}
	for _, n := range d.Nodes {
		if d.callersOf(n.Node) > 1 {
			p.idleCaller(n)
			p.Gap()
		}
	}
	for _, c := range d.Callers[:min(len(d.Callers), maxIdleCallers)] {
		p.idleCaller(c)
		p.ends(c)
		p.Gap()
	}
	if more := len(d.Callers) - maxIdleCallers; more > 0 {
		p.Line(p.In(layout.Dim, "and "+format.Count(more, "caller")+" more; --json has all"))
		p.Gap()
	}
	p.Paragraph("", "", "GOOD: calls that came after so long idle and had their reply, or were the first. The others: "+
		"connections that were closed after so long idle, by whom, or that failed a call. RE-DIALLED: for so many of "+
		"them a call waited for a new connection.", layout.Dim)
	return p.To(w, "the connections")
}

func (d Connections) callersOf(node string) (count int) {
	for _, c := range d.Callers {
		if c.Node == node {
			count++
		}
	}
	return count
}

func (p *page) idleCaller(c IdleCaller) {
	p.Paragraph("", "", p.Text(fmt.Sprintf("%s to %s, %s", c.Caller, c.Node, format.Count(c.Connections,
		"connection"))), layout.Bold)
	p.idleTable(c)
	for _, t := range thens {
		if r, ok := c.Ranges[t]; ok {
			p.Paragraph("- ", "  ", c.rangeText(t, r), layout.None)
		}
	}
	if text := c.limitText(); text != "" {
		p.Paragraph("- ", "  ", text, layout.Bold)
	}
	if !c.UsesSeen {
		p.Paragraph("", "", "What was used again was not seen: record on the host of the client, too.", layout.Dim)
	}
}

func (p *page) idleTable(c IdleCaller) {
	columns := slices.DeleteFunc(slices.Clone(thens), func(t connection.Then) bool {
		return !slices.ContainsFunc(c.Idle, func(r IdleRow) bool { return r.Then[t] > 0 })
	})
	heads := []string{}
	for _, t := range columns {
		heads = append(heads, c.head(t))
	}
	if slices.ContainsFunc(columns, func(t connection.Then) bool { return t != connection.UsedAgain }) {
		heads = append(heads, "RE-DIALLED")
	}
	head := layout.Pad("IDLE FOR", idleSpan)
	for _, h := range heads {
		head += fmt.Sprintf("  %5s", h)
	}
	wide := layout.Width(head) <= p.Style.Width
	if wide {
		p.Line(p.In(layout.Dim, head))
	}
	for _, r := range c.Idle {
		if len(r.Then) == 0 {
			continue
		}
		line, parts := layout.Pad(r.span(), idleSpan), []string{}
		for i, h := range heads {
			n := r.Redialled
			if i < len(columns) {
				n = r.Then[columns[i]]
			}
			text := "-"
			if n > 0 {
				text = fmt.Sprint(n)
				parts = append(parts, text+" "+h)
			}
			line += "  " + layout.PadLeft(text, max(len(h), 5))
		}
		if wide {
			p.Line(line)
		} else {
			p.Paragraph("", "  ", r.span()+": "+strings.Join(parts, ", "), layout.None)
		}
	}
}

// idleSpan are the columns of an idle time.
const idleSpan = 12

// span names a row.
func (r IdleRow) span() string {
	switch {
	case r.ToNs == 0:
		return format.Interval(time.Duration(r.FromNs)) + " or more"
	case r.FromNs == 0:
		return "less than " + format.Interval(time.Duration(r.ToNs))
	}
	return format.Interval(time.Duration(r.FromNs)) + " to " + format.Interval(time.Duration(r.ToNs))
}

// idleText is an idle time: "4.81 s", "4m50s".
func idleText(ns int64) string {
	if d := time.Duration(ns); d >= 2*time.Minute {
		return format.Interval(d.Round(time.Second))
	}
	return format.Brief(ns)
}

// rangeText says after which idle times the same came, and what it cost.
func (c IdleCaller) rangeText(t connection.Then, r IdleRange) string {
	span := idleText(r.MinNs)
	if longest := idleText(r.MaxNs); longest != span {
		span += " to " + longest
		if r.Count > 2 {
			span += ", median " + idleText(r.P50Ns)
		}
	}
	what := c.text(t)
	text := fmt.Sprintf("%s%s: %s, after %s idle", strings.ToUpper(what[:1]), what[1:], format.Count(r.Count, "time"),
		span)
	if r.Resets > 0 && t != connection.ResetWhenUsed {
		text += fmt.Sprintf("; %s by a reset", ofCount(r.Resets, r.Count))
		if t == connection.ClosedByServer {
			text += " (a " + c.Peer + " ends what is idle by a FIN; firewalls, balancers and hosts that restarted " +
				"send resets)"
		}
	}
	for _, b := range slices.Sorted(maps.Keys(r.Behind)) {
		text += fmt.Sprintf("; %s right after a connection of %s was closed by that server",
			ofCount(r.Behind[b], r.Count), b)
	}
	if r.SentInVain > 0 {
		text += fmt.Sprintf("; %s the client sent on it after that, in vain", ofCount(r.SentInVain, r.Count))
	}
	if r.Redialled == 0 {
		return text
	}
	text += fmt.Sprintf("; %s a call dialled again and waited %s", ofCount(r.Redialled, r.Count),
		format.Brief(r.RedialP50Ns))
	if r.Redialled > 1 {
		text += " (median), " + format.Brief(r.RedialMaxNs) + " at most"
	}
	return text
}

// ofCount is "all" or "3 of 5" times.
func ofCount(n, of int) string {
	if n == of {
		return "each time"
	}
	return fmt.Sprintf("%d of %s", n, format.Count(of, "time"))
}

// limitText says up to which idle time connections were good, and from which on they were not; empty where none was
// idle for a second or longer, or none was closed then.
func (c IdleCaller) limitText() string {
	good := c.Ranges[connection.UsedAgain].MaxNs
	var ends []string
	least := int64(0)
	for _, t := range thens[1:] {
		r := c.Ranges[t]
		if r.longMinNs == 0 {
			continue
		}
		if least == 0 || r.longMinNs < least {
			least = r.longMinNs
		}
		ends = append(ends, c.text(t)+" from "+idleText(r.longMinNs)+" on")
	}
	switch {
	case len(ends) == 0 || good == 0 && !c.UsesSeen:
		return ""
	case good == 0:
		return "None was good again after a second or more; " + strings.Join(ends, "; ")
	case good < least:
		return "Good up to " + idleText(good) + " idle; " + strings.Join(ends, "; ")
	}
	return "Good up to " + idleText(good) + " idle, but some were not: " + strings.Join(ends, "; ")
}

// ends lists the closed connections.
func (p *page) ends(c IdleCaller) {
	for _, e := range c.Ends {
		lead := e.Time.Format("15:04:05.000Z") + "  "
		p.Paragraph(lead, strings.Repeat(" ", len(lead)), p.Text(c.endText(e)), layout.None)
	}
}

// endText says how one connection ended.
func (c IdleCaller) endText(e ConnectionEnd) string {
	parts := []string{fmt.Sprintf("%s %s after %s idle", e.Connection, c.text(e.Then), idleText(e.IdleNs))}
	if e.Reason != "" {
		parts[0] += " (" + e.Reason + ")"
	}
	if e.AgeNs > 0 {
		parts = append(parts, idleText(e.AgeNs)+" old")
	}
	parts = append(parts, format.Count(e.Calls, "call"))
	switch {
	case e.SentInVain:
		parts = append(parts, "the client sent on it after that, in vain")
	case e.CallsLost > 0:
		parts = append(parts, fmt.Sprintf("%d more without a reply", e.CallsLost))
	}
	if e.Then == connection.ClosedByServer && e.NoticedNs > 0 {
		parts = append(parts, "open at the client for another "+idleText(e.NoticedNs))
	}
	if e.RedialNs > 0 {
		when := "then"
		if e.RedialAfterNs > 0 {
			when = idleText(e.RedialAfterNs) + " later"
		}
		parts = append(parts, fmt.Sprintf("a call dialled again %s and waited %s", when, format.Brief(e.RedialNs)))
	}
	return strings.Join(parts, ", ")
}
