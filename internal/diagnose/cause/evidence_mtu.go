package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// blackHole is a path that drops large segments and does not tell their sender. Shorter timers do not help there, and
// no segment is lost by chance.
func blackHole(n *facts.Node, limits []hosts.SizeLimit) *Finding {
	f := finding(n, n.Claim(func(_ account.Account, s account.Segment) bool {
		return s.Actor == account.Network && s.State == account.Retransmit
	}))
	f.Title = "Large segments never arrive: the path's MTU is smaller than its ends believe, and nobody tells them " +
		"(an MTU black hole)"
	var lostNs, times int64
	for _, l := range limits {
		from, to := l.Client, n.Address
		if l.From == recording.Server {
			from, to = to, from
		}
		lostNs, times = lostNs+l.WaitedNs, times+l.Lost
		f.support(l.Source, float64(l.Lost), "times",
			"from %s to %s: segments of %s and more were sent again in vain, %s", from, to,
			counted(int(l.LostBytes), "byte"), facts.TimesText(int(l.Lost)))
		if l.BetweenBytes > 0 {
			f.support(l.Source, float64(l.BetweenRuns), "segments",
				"%s of %s on average arrived there between those that did not, and none as large was seen to",
				counted(int(l.BetweenRuns), "segment"), counted(int(l.BetweenBytes/max(l.BetweenRuns, 1)), "byte"))
			continue
		}
		f.support(l.Source, float64(l.Passed), "segments",
			"%s of up to %s arrived there, %s between those that did not", counted(int(l.Passed), "segment"),
			counted(int(l.PassedBytes), "byte"), format.Thousands(int(l.BetweenRuns)))
	}
	f.lose(n, facts.LostSilent, float64(lostNs), lostNs/max(times, 1))
	f.FixSteps = mtuFix()
	f.See = []string{"https://www.rfc-editor.org/rfc/rfc2923#section-2.1", "https://www.rfc-editor.org/rfc/rfc4821"}
	return f
}

// mtuFix lets the ends know of the path's MTU, or find out.
func mtuFix() []remedy.Step {
	return []remedy.Step{
		change("let-icmp-pass", "Find the hop with the smaller MTU (tracepath -n to the other end; tunnels, VPNs "+
			"and overlays have one) and let its ICMP messages pass: type 3 code 4 (fragmentation needed), ICMPv6 "+
			"type 2 (packet too big); security groups and firewalls often drop them"),
		orElse(change("clamp-mss", "Clamp the MSS of new connections on the router before that hop: nft add "+
			"rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu; or give the interfaces of "+
			"both ends the path's MTU")),
		{
			ID: "smaller-route-mtu", Kind: remedy.Change,
			Text: "Until then, on the clients' hosts: a smaller MTU on the route to the server, which learns of it " +
				"by the MSS of new connections: ip route change <destination> via <gateway> mtu 1280",
			Undo: "ip route change <destination> via <gateway>",
		},
		{
			ID: "probe-mtu", Kind: remedy.Command, Or: true,
			Text: "Where callers wait for longer than about 3 s: let TCP of the sending host find out by itself, " +
				"after its first timeouts",
			Command: "sysctl -w net.ipv4.tcp_mtu_probing=1",
			Undo:    "sysctl -w net.ipv4.tcp_mtu_probing=0",
		},
	}
}
