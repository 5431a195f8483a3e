package cause

import (
	"sort"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// tlsHandshakeStorm: the main thread itself does each handshake, with a signature that costs as much as a hundred
// commands, before it serves other clients.
var tlsHandshakeStorm = Cause{
	ID:      "tls-handshake-storm",
	Options: []remedy.Topic{remedy.KeepConnections},
	Explain: explainHandshakeStorm,
}

const (
	// tlsCommandNs is the loop's time for a small command under TLS, in addition to what commandstats counts: two
	// system calls, a record each way (measured: GET on 7.0.15 at 20 connections, 14-16 µs of CPU time each).
	// Bound: noted, on 7.0.15, a little more than the upper end.
	tlsCommandNs = 20_000.0
	// plainAcceptNs is the loop's time for a whole connection without TLS: below it there was no signature.
	// Bound: guess, the CPU time of new connections without TLS on several machines would measure it.
	plainAcceptNs = 100_000.0
	// maxHandshakeNs: RSA of 4096 bits takes 3-6 ms (openssl speed rsa4096); more time per connection would have
	// another cause.
	// Bound: noted, openssl speed rsa4096, twice the upper end.
	maxHandshakeNs = 10e6
)

// handshakeWork is what new connections took of the main thread.
type handshakeWork struct {
	spans  facts.Spans // of the tap: the first activity of each new connection
	count  float64     // new connections of others
	costNs float64     // of the main thread's CPU time, each
	cores  float64
	source string
}

// speaksTLS: the probe uses it, or the server says so.
func speaksTLS(n *facts.Node) bool {
	if connection.ConnectionCostOf(n).TLS {
		return true
	}
	port, ok := n.Config("tls-port")
	return ok && port != "0" && port != ""
}

func handshakeWorkOf(n *facts.Node) (h handshakeWork, ok bool) {
	received := n.Series(series.TotalConnectionsReceived)
	if len(received) < 2 || !speaksTLS(n) {
		return h, false
	}
	from, to := received[0].TimeNs, received[len(received)-1].TimeNs
	seconds := max(float64(to-from)/1e9, 1e-9)
	h.count = received.Growth() - connection.ProbeCallsOf(n, from, to).Fresh
	if h.count <= 0 {
		return h, false
	}
	if seen := mainthread.TLSHandshakesOf(n); seen.Count >= degree.Part*h.count {
		h.spans, h.costNs, h.source = seen.Spans, seen.OnCPUNs/seen.Count, recording.SourceTap
	} else if d, known := mainthread.DemandOf(n); known {
		usec := 0.0
		for _, command := range n.CountedCommands() {
			usec += n.Growth(series.CommandUsec(command))
		}
		left := d.Run*seconds*1e9 - usec*1e3 - n.Growth(series.TotalCommandsProcessed)*tlsCommandNs
		h.costNs, h.source = left/h.count, d.Source
	}
	h.cores = h.costNs * h.count / seconds / 1e9
	return h, h.costNs >= plainAcceptNs && h.costNs <= maxHandshakeNs
}

func explainHandshakeStorm(n *facts.Node) *Finding {
	h, ok := handshakeWorkOf(n)
	if !ok {
		return nil
	}
	behind := func(a account.Account) facts.StateTimes {
		return h.spans.TimesWithin(a, func(s account.Segment) bool { return s.Actor != account.Client })
	}
	cl := n.ClaimOf(behind)
	if h.cores < degree.Most { // a new connection waits for its handshake anyway: other calls have to wait for it, too
		begun := connection.OpenTimesOf(n)
		cl = n.ClaimOf(func(a account.Account) facts.StateTimes {
			if begun.OpenedJustBefore(a.Call, int64(degree.Long)) {
				return nil
			}
			return behind(a)
		})
	}
	f := finding(n, cl)
	if h.cores < degree.Most && (!cl.Matters() || float64(cl.Ns) < degree.Most*float64(n.Ledger.ExcessNs)) {
		return nil
	}
	if d, known := mainthread.DemandOf(n); known && h.cores >= degree.Most {
		part := min(h.cores/max(d.Run, 1e-9), 1)
		q, _ := n.Queue()
		unexplained := min(float64(n.UnexplainedWaits().Ns)/float64(max(n.Ledger.ExcessNs, 1)), 1)
		f.loseOfCalls(n, max(max(q.Share(), unexplained)*part, part/2), q.WaitNs)
		f.support(d.Source, part, "of its time",
			"handshakes are %.0f %% of what the main thread did (%.2f of %.2f cores)", part*100, h.cores, d.Run)
	}
	f.support(recording.SourceServer, h.count/n.Seconds(), "per second", "%.0f new connections per second "+
		"(total_connections_received; slowpath's own are not counted), under TLS", h.count/n.Seconds())
	f.support(h.source, h.costNs, "ns",
		"each takes %s of the main thread's CPU time before its first command", format.Brief(int64(h.costNs)))
	if cl.Calls > 0 {
		f.support(recording.SourceTap, float64(cl.Calls), "calls", "%s waited while it did handshakes of others, up "+
			"to %s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	}
	f.supportTLSPhase(n)
	f.supportShortLived(n)
	if h.source != recording.SourceTap {
		f.doubt(h.source, 0, "", "that the CPU time went into handshakes is inferred: commands do not account for it")
	}
	f.FixSteps = handshakeStormFix(n)
	return f
}

// supportTLSPhase compares the probe's handshakes with its dials: the kernel answers a SYN, the main thread a
// ClientHello.
func (f *Finding) supportTLSPhase(n *facts.Node) {
	var dials, phases []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" {
			continue
		}
		for _, s := range n.Rec.SegmentsOf(c.ID) {
			switch s.State {
			case account.Dial:
				dials = append(dials, s.ToNs-s.FromNs)
			case account.TLS:
				phases = append(phases, s.ToNs-s.FromNs)
			}
		}
	}
	if len(dials) == 0 || len(phases) == 0 {
		return
	}
	sort.Slice(dials, func(i, j int) bool { return dials[i] < dials[j] })
	sort.Slice(phases, func(i, j int) bool { return phases[i] < phases[j] })
	f.support(recording.SourceProbe, float64(phases[len(phases)/2]), "ns",
		"a new connection of the probe waits %s for its TLS handshake, up to %s, and %s for TCP's",
		format.Brief(phases[len(phases)/2]), format.Brief(phases[len(phases)-1]), format.Brief(dials[len(dials)/2]))
}

func handshakeStormFix(n *facts.Node) []remedy.Step {
	const perCycle = "max-new-tls-connections-per-cycle"
	fix := append(remedy.Steps(n, remedy.KeepConnections, nil), inApplication("spread-dials",
		"If many instances start together, let each wait a random time before it connects, with retries that back off "+
			"with jitter and dial timeouts of at least 5 s: a client that gives up and dials again makes the queue "+
			"longer"))
	name, version, _ := strings.Cut(n.Rec.Meta[recording.MetaServer], " ")
	taken, known := n.Config(perCycle)
	switch {
	case known && taken != "1":
		fix = append(fix, remedy.ConfigSet(n, "few-handshakes-per-cycle", perCycle, "1",
			"Let commands go on between handshakes"))
	case !facts.ServerAtLeast(n, 7, 4):
		fix = append(fix, newerServer("Upgrade to Redis 7.4 or Valkey 8, which take one new TLS connection per "+
			"iteration of the event loop ("+perCycle+"): older versions take all that are queued first"))
	}
	if name == "valkey" && facts.VersionAtLeast(version, 8, 1) {
		fix = append(fix, remedy.ConfigSet(n, "more-io-threads", "io-threads", "4",
			"They do handshakes, too. Only where there are as many CPUs"))
		fix[len(fix)-1].Since = "Valkey 8.1"
	}
	return append(fix, change("ecdsa-certificate", "A certificate with an ECDSA key (P-256) instead of RSA: its "+
		"signature costs about a tenth; or a TLS proxy (stunnel, Envoy) on the server's host"))
}
