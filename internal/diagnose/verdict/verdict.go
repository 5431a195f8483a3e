package verdict

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

func verdict(c *facts.Case, d Diagnosis) (string, string) {
	seconds := fmt.Sprintf("%.0f s", c.Seconds())
	if c.Rec.Used(recording.SourceText) {
		return ofTexts(c, d)
	}
	if len(d.Findings) > 0 {
		return Findings, headline(d)
	}
	l := c.Ledger
	if l.Latency.Calls == 0 && c.Rec.Used(recording.SourceCapture) {
		return Inconclusive, "Inconclusive: no call could be followed in this capture: what could not be seen says why."
	}
	if l.Latency.Calls == 0 && len(c.Nodes) > 0 && !answered(c) {
		return Inconclusive, "Inconclusive: nothing was seen. No call was made, and the server gave no information."
	}
	if failed := failedCalls(c); failed != "" {
		return Inconclusive,
			fmt.Sprintf("Inconclusive: %s failed in %s, and nothing that was seen explains it.", failed, seconds)
	}
	if unseen := mostlyUnseen(c); unseen != "" && c.Rec.Used(recording.SourceCapture) {
		return Inconclusive, fmt.Sprintf("Inconclusive: %s could be followed in this capture, %d of them slow.",
			format.Count(l.Users.Calls, "call"), l.Users.Slow) + unseen
	}
	if l.Latency.Calls == 0 && c.Rec.Used(recording.SourceProbe) {
		return Inconclusive, fmt.Sprintf("Inconclusive: in %s none of slowpath's own calls came back, and no client's "+
			"was seen. Watch longer.", seconds)
	}
	if floor := capturedFloor(c); floor != "" {
		return Inconclusive, floor
	}
	if slowCalls(l) == 0 {
		if l.Latency.Calls == 0 {
			return Healthy,
				fmt.Sprintf("Healthy: the server's own metrics show nothing slow in %s (no calls were timed).", seconds)
		}
		return Healthy, noneSlow(c, d, seconds) + unseenClients(c) + fewCalls(c)
	}
	slowest := slowest(l)
	if few(l) && slowest < facts.HealthyMaxNs {
		return Healthy, fmt.Sprintf("Healthy: %s in %s were slow (up to %s), too few to be a pattern.%s", slowOf(d),
			seconds, format.Brief(slowest), stalls(c, d)) + capturedSilence(c) + unseenClients(c) + fewCalls(c)
	}
	return Inconclusive,
		fmt.Sprintf("Inconclusive: %s in %s were slow (up to %s), and nothing that was seen explains them.", slowOf(d),
			seconds, format.Brief(slowest)) + meanwhile(c) + capturedSilence(c)
}

// meanwhile says what the main threads of the servers did while calls waited for what is not known.
func meanwhile(c *facts.Case) (text string) {
	for _, n := range c.Nodes {
		t := mainthread.LoopTimeOf(n)
		if t.Samples < hosts.FewSamples {
			continue
		}
		var did []string
		for _, p := range t.Parts[:min(len(t.Parts), degree.Listed)] {
			if p.Samples > 0 {
				share := format.Percent(float64(p.Samples) / float64(t.Samples))
				did = append(did, partText(p)+" "+share)
			}
		}
		text += fmt.Sprintf(" By %d samples the main thread of %s was meanwhile: %s.", t.Samples, n.Address,
			strings.Join(did, ", "))
	}
	return text
}

func partText(p mainthread.LoopPart) string {
	switch {
	case p.State == stacks.Command && strings.HasSuffix(p.Called, "Command"):
		return p.What + " (" + format.Name(p.Called) + ")"
	case p.What != "":
		return p.What
	case p.Function != "":
		return "in " + format.Name(p.Function)
	}
	return "in functions that are not known"
}

// few reports whether so few calls were slow that it is no pattern.
func few(l *account.Ledger) bool {
	return l.Probe.Few(facts.HealthyMaxShare) && l.Users.Few(facts.HealthyMaxShare)
}

// slowest is the time of the slowest call in nanoseconds, without slowpath's own delay.
func slowest(l *account.Ledger) (ns int64) {
	for _, p := range l.Populations {
		ns = max(ns, p.MaxNs)
	}
	return ns
}

func slowCalls(l *account.Ledger) (n int) {
	for _, p := range l.Populations {
		n += p.Slow
	}
	return n
}

// failedCalls says how many calls failed, for no cause that was found: slowpath's own, and those of clients whose
// connections the server's end closed. Error replies to clients are no failures here: most are answers that an
// application expects.
func failedCalls(c *facts.Case) string {
	var parts []string
	if own := nodes.OwnFailuresOf(c); own.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d of slowpath's own calls (%s)", own.Failed, own.Calls,
			own.Reasons.List(3)))
	}
	lost, refused := 0, 0
	for _, n := range c.Nodes {
		l := nodes.LostCallsOf(n, facts.Span{FromNs: c.StartNs, ToNs: c.EndNs})
		lost, refused = lost+l.Calls-l.OfProxies, refused+l.RefusedDials
	}
	if lost >= facts.HealthyMinCalls {
		parts = append(parts, fmt.Sprintf("%d calls of clients, whose connections the server's end closed,", lost))
	}
	if refused >= facts.HealthyMinCalls {
		parts = append(parts, fmt.Sprintf("%d connections of clients, which were refused,", refused))
	}
	return strings.Join(parts, " and ")
}

// unseenClients says that a healthy server was judged by slowpath's own calls alone, or mostly.
func unseenClients(c *facts.Case) string {
	if c.Rec.SeesCalls() {
		return mostlyUnseen(c)
	}
	if c.Ledger.Latency.Calls == 0 {
		return ""
	}
	return " These are slowpath's own calls: what clients wait for at their end was not seen."
}

// noneSlow says of a server without slow calls how long they took: the median is that of the users' calls where these
// were seen.
func noneSlow(c *facts.Case, d Diagnosis, seconds string) string {
	calls, medianNs := 0, int64(0)
	for _, p := range d.Populations {
		calls += p.Calls
		if medianNs == 0 {
			medianNs = p.P50Ns
		}
	}
	healthy := "Healthy"
	if c.Ledger.Users.Calls > 0 && fewCalls(c) != "" {
		healthy = "Healthy as far as can be seen"
	}
	than := format.Brief(c.Ledger.ThresholdNs)
	if fresh := d.Latency.FreshSlowThresholdNs; fresh > 0 {
		than += " (on a new connection " + format.Brief(fresh) + ")"
	}
	return fmt.Sprintf("%s: none of %s in %s took %s or more; median %s, slowest %s.", healthy,
		format.Count(calls, "call"), seconds, than, format.Brief(medianNs), format.Brief(slowest(c.Ledger)))
}

// slowOf says how many calls were slow, of each population where there are several.
func slowOf(d Diagnosis) string {
	if len(d.Populations) == 1 {
		p := d.Populations[0]
		return fmt.Sprintf("%s of %s", format.Thousands(p.SlowCalls), format.Count(p.Calls, "call"))
	}
	var parts []string
	for _, p := range d.Populations {
		slow, of := format.Thousands(p.SlowCalls), format.Thousands(p.Calls)
		switch p.Name {
		case account.OfUsers:
			parts = append(parts, slow+" of "+of+" calls of clients")
		case account.OfProbe:
			parts = append(parts, slow+" of "+of+" of slowpath's own")
		case account.OfLoad:
			parts = append(parts, slow+" of "+of+" of the load")
		case account.OfSlowlog:
			parts = append(parts, format.Count(p.SlowCalls, "command")+" in SLOWLOG")
		}
	}
	return strings.Join(parts, " and ")
}

// stalls says of rare slow calls of clients how often, for how long, and how bad: it is what users complain about.
func stalls(c *facts.Case, d Diagnosis) string {
	for _, p := range d.Populations {
		if p.Name == account.OfUsers && p.Stalls >= account.MinSlowCalls {
			minutes := c.Seconds() / 60
			return fmt.Sprintf(" Clients felt %s stalls per minute, %s of each minute; p99.9 %s, worst %s.",
				format.Rounded(float64(p.Stalls)/minutes), format.Brief(int64(float64(p.StalledNs)/minutes)),
				format.Brief(p.P999Ns), format.Brief(p.MaxNs))
		}
	}
	return ""
}

func answered(c *facts.Case) bool {
	for _, n := range c.Nodes {
		if len(n.Series(series.UptimeInSeconds)) > 0 {
			return true
		}
	}
	return false
}

func headline(d Diagnosis) string {
	f := d.Findings[0]
	s := fmt.Sprintf("%s%s. This explains %s of the time that callers lost.", f.Title, whereOf(d, f),
		format.Percent(f.ExcessShare))
	if f.Confidence < degree.Most {
		s = "Probably: " + s
	}
	return s
}

// whereOf names the nodes of a finding, where there are others.
func whereOf(d Diagnosis, f cause.Finding) string {
	for i, h := range d.Hops {
		if len(f.Nodes) == 1 && f.Nodes[0] == h.Node {
			return fmt.Sprintf(" (%s, hop %d of %d)", h.name(), i+1, len(d.Hops))
		}
	}
	switch all := len(f.Nodes) + f.MoreNodes; {
	case len(f.Nodes) == 0 || len(d.Target.Nodes) < 2 || strings.Contains(f.Title, f.Nodes[0]):
		return ""
	case all == len(d.Target.Nodes):
		return fmt.Sprintf(" (at all %d nodes)", all)
	case f.MoreNodes > 0:
		return fmt.Sprintf(" (at %s and %s)", strings.Join(f.Nodes, ", "), format.Count(f.MoreNodes, "more node"))
	}
	return fmt.Sprintf(" (at %s)", strings.Join(f.Nodes, ", "))
}
