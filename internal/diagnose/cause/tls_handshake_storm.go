package cause

import (
	"fmt"
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// tlsHandshakeStorm: the main thread itself makes each handshake, with a signature that costs as much as a hundred
// commands, before it serves anybody else.
var tlsHandshakeStorm = Cause{
	ID:    "tls-handshake-storm",
	Title: "New TLS connections take the main thread's time: all others wait behind their handshakes",
	Layer: "client",
	Needs: Needs{
		T0: "new connections per second of a server that speaks TLS, and CPU time of its main thread that no command " +
			"accounts for; the TLS phase of the probe's new connections",
		T1: "the main thread's CPU time by the host",
		T2: "each handshake that held the main thread, and the calls that waited meanwhile",
	},
	Explain: explainHandshakeStorm,
}

// Bounds of a storm.
const (
	// A few new connections per second are a pool that breathes .
	stormRate = 20.0
	// stormCores: the part of the main thread's time that goes into handshakes from which on it is their number that
	// makes it busy, and not only their callers who wait for their own.
	stormCores = 0.3
	// freshNs is how long a connection is taken to be new.
	freshNs = int64(1e9)
	// stormExcess: below this part of what slow calls lost, they are slow for another reason, and their own handshakes
	// are what is left.
	stormExcess = 0.4
	// tlsCommandNs is the loop's time for a small command under TLS, beside what commandstats counts: two system calls,
	// a record each way (measured: GET on 7.0.15 at 20 connections, 14-16 µs of CPU time each).
	tlsCommandNs = 20_000.0
	// plainAcceptNs is the loop's time for a connection without TLS, as far as it goes: what is below is no signature.
	plainAcceptNs = 100_000.0
	// dearestNs: RSA of 4096 bits takes 3-6 ms (openssl speed rsa4096); where the time for each connection would be
	// more, it went elsewhere.
	dearestNs = 10e6
)

// handshakeWorkOf is what new connections took of the main thread.
type handshakeWork struct {
	spans  facts.Spans // of the kernel source: the first turn of each new connection
	count  float64     // new connections of others
	costNs float64     // of the main thread's CPU time, each
	cores  float64
	source string
}

// speaksTLS: the probe does, or the server says so.
func speaksTLS(n *facts.Node) bool {
	if n.ConnectionCost().TLS {
		return true
	}
	port, ok := n.Config("tls-port")
	return ok && port != "0" && port != ""
}

func handshakeWorkOf(n *facts.Node) (h handshakeWork, ok bool) {
	received := n.Info("total_connections_received")
	if len(received) < 2 || !speaksTLS(n) {
		return h, false
	}
	from, to := received[0].TimeNs, received[len(received)-1].TimeNs
	seconds := max(float64(to-from)/1e9, 1e-9)
	h.count = received.Growth() - n.ProbeCalls(from, to).Fresh
	if h.count < stormRate*seconds {
		return h, false
	}
	if seen := n.TLSHandshakes(); seen.Count >= h.count/4 {
		h.spans, h.costNs, h.source = seen.Spans, seen.OnCPUNs/seen.Count, recording.SourceTap
	} else if d, known := n.Demand(); known {
		usec := 0.0
		for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
			if len(name) > 5 && name[len(name)-5:] == ".usec" {
				usec += n.Growth(name)
			}
		}
		left := d.Run*seconds*1e9 - usec*1e3 - n.Growth("total_commands_processed")*tlsCommandNs
		h.costNs, h.source = left/h.count, d.Source
	}
	h.cores = h.costNs * h.count / seconds / 1e9
	return h, h.costNs >= plainAcceptNs && h.costNs <= dearestNs
}

func explainHandshakeStorm(n *facts.Node) *Finding {
	h, ok := handshakeWorkOf(n)
	if !ok {
		return nil
	}
	behind := func(a account.Account) int64 {
		return h.spans.SegmentsNs(a, func(s account.Segment) bool { return s.Actor != account.Client })
	}
	cl := n.ClaimOf(behind)
	if h.cores < stormCores { // who opens a connection waits for its handshake anyway: others have to wait for it, too
		begun := n.OpenTimes()
		cl = n.ClaimOf(func(a account.Account) int64 {
			if begun.OpenedJustBefore(a.Call, freshNs) {
				return 0
			}
			return behind(a)
		})
	}
	f := finding(n, cl, 0.75)
	if h.cores < stormCores && (!cl.Matters() || f.ExcessShare < stormExcess) {
		return nil
	}
	if h.source == recording.SourceTap {
		f.Confidence = 0.93
	}
	if d, known := n.Demand(); known && h.cores >= stormCores {
		part := min(h.cores/max(d.Run, 1e-9), 1)
		if q, known := n.Queue(); known {
			f.ExcessShare = max(f.ExcessShare, q.Share()*part)
		}
		f.ExcessShare = max(f.ExcessShare, finding(n, n.UnexplainedWaits(), 0).ExcessShare*part, part/2)
		f.support(d.Source, fmt.Sprintf("handshakes are %.0f %% of what the main thread did (%.2f of %.2f cores)",
			part*100, h.cores, d.Run), part, "of its time")
	}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f new connections per second (total_connections_received; "+
		"slowpath's own are not counted), under TLS", h.count/n.Seconds()), h.count/n.Seconds(), "per second")
	f.support(h.source, fmt.Sprintf("each takes %s of the main thread's CPU time before its first command",
		facts.Dur(int64(h.costNs))), h.costNs, "ns")
	if cl.Calls > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d of %d slow calls waited while it made handshakes of others, "+
			"up to %s in one call", cl.Calls, len(n.Ledger.Slow), facts.Dur(cl.MaxNs)), float64(cl.Calls), "calls")
	}
	f.supportTLSPhase(n)
	f.supportShortLived(n)
	if h.source != recording.SourceTap {
		f.doubt(h.source, "that it is handshakes that its CPU time went into follows from what commands do not "+
			"account for", 0, "")
	}
	f.Fix = handshakeStormFix(n)
	f.See = []string{
		"https://github.com/redis/redis/issues/10524", "https://github.com/redis/redis/pull/12178",
		"https://redis.io/docs/latest/operate/oss_and_stack/management/security/encryption/",
	}
	return f
}

// supportTLSPhase holds the probe's handshakes against its dials: the kernel answers a SYN, the main thread a
// ClientHello.
func (f *Finding) supportTLSPhase(n *facts.Node) {
	var dials, phases []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" {
			continue
		}
		for _, s := range n.Rec.Segments[c.ID] {
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
	f.support(recording.SourceProbe, fmt.Sprintf("a new connection of the probe waits %s for its TLS handshake, up "+
		"to %s, and %s for TCP's", facts.Dur(phases[len(phases)/2]), facts.Dur(phases[len(phases)-1]),
		facts.Dur(dials[len(dials)/2])),
		float64(phases[len(phases)/2]), "ns")
}

func handshakeStormFix(n *facts.Node) []string {
	fix := append([]string{"Make connections once and keep them; where many instances start together, let each wait " +
		"for a random time before it connects, and let retries back off with jitter"},
		remedy.For(n, remedy.KeepConnections, nil)...)
	fix = append(fix, "Wait longer than a handshake takes while many are queued (dial timeouts of 5 s and more): "+
		"who gives up and dials again only makes the queue longer")
	valkey := n.Rec.Meta[recording.MetaServer]
	switch {
	case len(valkey) > 6 && valkey[:6] == "valkey":
		fix = append(fix, "io-threads 4 (Valkey 8.1 and later make handshakes in them), where there are as many CPUs",
			"max-new-tls-connections-per-cycle 1 (its default) keeps commands going between handshakes: raise it "+
				"only with CPUs to spare")
	case facts.ServerAtLeast(n, 7, 4):
		fix = append(fix, "max-new-tls-connections-per-cycle 1 (its default): commands go on between handshakes; "+
			"look whether it was raised")
	default:
		fix = append(fix, "Redis 7.4 and Valkey 8 take one new TLS connection per turn of the loop "+
			"(max-new-tls-connections-per-cycle): up to then all that are queued go first")
	}
	return append(fix, "A certificate with an ECDSA key (P-256) in place of RSA: its signature costs about a tenth; "+
		"or a TLS proxy (stunnel, Envoy) beside the server")
}
