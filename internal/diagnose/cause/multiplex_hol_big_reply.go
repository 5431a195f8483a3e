package cause

import (
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// multiplexBigReply: all callers of a client share a connection, and a reply of megabytes is sent before the small
// ones.
var multiplexBigReply = Cause{
	ID:      "multiplex-hol-big-reply",
	Explain: explainBigReply,
}

// bigReply is the size from which a reply takes notable time to send: 100 kB are 1 ms at 1 Gbit/s.
// Bound: guess, and the advice of Azure ("Large key values"); replies by size in many recordings would measure it.
const bigReply = 100_000

func explainBigReply(n *facts.Node) *Finding {
	big := map[string][]recording.Call{} // by connection, in order of their start
	for _, c := range n.Rec.Calls {
		if c.Source == recording.SourceTap && c.Node == n.Address && c.ReplyBytes >= bigReply {
			big[c.Conn] = append(big[c.Conn], c)
		}
	}
	if len(big) == 0 {
		return nil
	}
	behind, longest, bytes := facts.NameCounts{}, recording.Call{}, int64(0)
	cl := n.TapClaim(func(a account.Account) facts.StateTimes {
		b, ok := ahead(big[a.Call.Conn], a.Call)
		if !ok {
			return nil
		}
		// Until the last byte of the big one came in; the time until the server began to send it is the server's.
		times := facts.Spans{{FromNs: b.StartNs, ToNs: b.EndNs}}.TimesWithin(a, passing)
		if len(times) > 0 {
			behind[a.Call.Conn]++
			bytes = max(bytes, b.ReplyBytes)
			if b.EndNs-b.StartNs > longest.EndNs-longest.StartNs {
				longest = b
			}
		}
		return times
	})
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl)
	f.support(recording.SourceTap, float64(cl.Calls), "calls", "%s waited on their connection behind a big reply, up "+
		"to %s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	who := caller.ClientLabel(longest.Conn, longest.Client)
	f.support(recording.SourceTap, float64(bytes), "bytes",
		"%s on %s: a reply of %.1f MB took %s; the largest of them had %.1f MB", longest.Op, who,
		float64(longest.ReplyBytes)/1e6, format.Brief(longest.EndNs-longest.StartNs), float64(bytes)/1e6)
	f.weighShared(n, behind)
	f.FixSteps = []remedy.Step{
		inApplication("own-connection", "Read big values (%s from %s) on another connection: a second "+
			"ConnectionMultiplexer (StackExchange.Redis), a second StatefulRedisConnection or ConnectionPoolSupport "+
			"(Lettuce), redis.duplicate() (ioredis), PipelineMultiplex above its default (rueidis)",
			format.Name(longest.Op), format.Name(who)),
		orElse(inApplication("smaller-values", "Split values into pieces below 100 kB, or compress them (redis-cli "+
			"--bigkeys or --memkeys finds them)")),
	}
	return f
}

// passing reports whether the reply of a call may be behind another on the wire, in the socket, or in the client that
// reads it.
func passing(s account.Segment) bool {
	switch {
	case s.Actor == account.Network, s.State == account.Unexplained:
		return true
	case s.Actor == account.Client:
		return s.State == recording.Receive || s.State == recording.OffCPU
	}
	return s.Actor == account.Server && (s.State == account.Busy || s.State == account.Blocked ||
		s.State == account.Send)
}

// ahead finds the big reply that a call waited for: requested before, still in flight, and received before. What waits
// behind it is smaller, or it is a big reply itself.
func ahead(big []recording.Call, c recording.Call) (recording.Call, bool) {
	i := sort.Search(len(big), func(i int) bool { return big[i].StartNs > c.StartNs })
	for i--; i >= 0; i-- {
		if b := big[i]; b.ID != c.ID && b.EndNs > c.StartNs && b.EndNs <= c.EndNs &&
			b.ReplyBytes >= degree.Many*max(c.ReplyBytes, 1) {
			return b, true
		}
	}
	return recording.Call{}, false
}

// weighShared says how calls on other connections did meanwhile.
func (f *Finding) weighShared(n *facts.Node, behind facts.NameCounts) {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if ok && kept.P50Ns < n.Ledger.ThresholdNs {
		f.support(recording.SourceProbe, float64(kept.P90Ns), "ns",
			"90 %% of the calls on the probe's own connection have their reply within %s", format.Brief(kept.P90Ns))
	} else if ok {
		f.doubt(recording.SourceProbe, float64(kept.P50Ns), "ns", "calls on their own connection are slow, too: half "+
			"of the probe's take at least %s", format.Brief(kept.P50Ns))
	}
}
