package experiment

import (
	"fmt"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/stats"
)

// tooNoisy is the width of the interval of a ratio, as a share, from which the usual loss by a proxy, a fifth, does not
// show.
const tooNoisy = 0.2

// note adds what one must know to read the comparison.
func (s *Targets) note() {
	note := func(sentence string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(sentence, args...)) }
	if s.Interrupted {
		note("Ended early: %d of %d rounds have loads.", s.roundsMade(), s.Rounds)
	}
	if n := s.roundsMade(); n < stats.RepeatsForInterval {
		note("No 95 %% interval with %s; it takes %d (--repeat %[2]d).", format.Count(n, "round"),
			stats.RepeatsForInterval)
	}
	var noisy []string
	for _, t := range s.Targets {
		if t.Change == nil || t.Change.RequestsPerSecond.Low == nil {
			continue
		}
		if e := t.Change.RequestsPerSecond; *e.High-*e.Low > tooNoisy*(1+e.Value) {
			noisy = append(noisy, t.Name)
		}
	}
	if len(noisy) > 0 {
		note("The rounds differ too much for a comparison of %s with %s: see what else runs on these machines, or "+
			"give a longer --for and more --repeat.", strings.Join(noisy, ", "), s.Targets[0].Name)
	}
	s.noteSame()
	var drift []string
	for _, t := range s.Targets {
		if stats.Drifts(each(t.runs(), perSecond)) {
			drift = append(drift, t.Name)
		}
	}
	if len(drift) > 0 {
		note("The machines were not steady: the calls per second of %s rose or fell from the first round to the last.",
			strings.Join(drift, ", "))
	}
}

// roundsMade is the number of the last round with a load.
func (s *Targets) roundsMade() (last int) {
	for _, t := range s.Targets {
		for _, r := range t.Runs {
			last = max(last, r.Round)
		}
	}
	return last
}

// noteSame says which targets are the same server, or a proxy in front of another target.
func (s *Targets) noteSame() {
	for i, t := range s.Targets {
		for _, u := range s.Targets[:i] {
			if t.Target.Identity == "" || t.Target.Identity != u.Target.Identity {
				continue
			}
			s.Notes = append(s.Notes, sameServer(u, t))
			break // one is enough: that one has been compared with the others
		}
	}
}

func sameServer(a, b Compared) string {
	through := func(proxy, server Compared) string {
		return fmt.Sprintf("%s passes calls on to the server of %s.", proxy.who(), server.who())
	}
	switch {
	case a.Target.Kind == Proxy && b.Target.Kind == Proxy:
		return fmt.Sprintf("%s and %s pass calls on to the same server.", a.who(), b.who())
	case b.Target.Kind == Proxy:
		return through(b, a)
	case a.Target.Kind == Proxy:
		return through(a, b)
	case a.Target.Kind == Cluster:
		return fmt.Sprintf("%s and %s are the same cluster: what differs between them is noise.", a.Name, b.Name)
	}
	return fmt.Sprintf("%s and %s are the same server: what differs between them is noise, or the path to it. If one "+
		"address is a proxy in front of it, write proxy:HOST:PORT.", a.Name, b.Name)
}
