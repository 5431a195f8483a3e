package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/account"
	"slowpath/internal/recording"
)

// introspectionLoad: what is meant to look at the server weighs on it: MONITOR, INFO and CLIENT LIST at a high rate, SLOWLOG GET of
// everything, MEMORY USAGE of big keys. Catalogue I11.
var introspectionLoad = Cause{
	ID:    "introspection-load",
	Title: "Looking at the server is what loads it",
	Layer: "server",
	Needs: Needs{
		T0: "time of INFO, CLIENT LIST, SLOWLOG, MEMORY … in commandstats; MONITOR clients (flag O) in CLIENT LIST",
		T1: "the main thread on the CPU without a pause meanwhile",
	},
	Explain: explainIntrospection,
}

func explainIntrospection(n *Node) *Finding {
	h := n.heldBy("introspection-load")
	monitors := n.monitors()
	share := n.monitorShare(len(monitors))
	if share >= monitorMinShare {
		h.Claim = h.add(n.monitored(share))
	}
	if !h.matters() {
		return nil
	}
	f := n.finding(h.Claim, max(h.confidence(n), 0.8))
	if len(h.Suspects) > 0 {
		f.Title = h.Suspects[0].Command + " is what loads the server: it is asked too often, or for too much"
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, h.Suspects[0].Command)
		f.supportTimeOf(n, h.Suspects)
		f.Fix = append(f.Fix, introspectionFix(n, h.Suspects)...)
	}
	if share >= monitorMinShare {
		if len(h.Suspects) == 0 {
			f.Title = "MONITOR repeats every command to its client, at the cost of all others"
		}
		c := monitors[0]
		f.support(recording.SourceServer, fmt.Sprintf("CLIENT LIST: %s in MONITOR, one is %s%s for %d s", times(len(monitors)), c.Addr, library(c), c.Age), float64(len(monitors)), "clients")
		f.support(recording.SourceServer, fmt.Sprintf("each of %.0f commands per second is formatted and sent to each of them: about %.0f %% of the main thread", n.CommandsPerSecond(), share*100), share, "")
		f.Fix = append(f.Fix, fmt.Sprintf("CLIENT KILL ADDR %s; look with SLOWLOG, LATENCY, or a capture of the traffic instead of MONITOR", c.Addr))
	}
	if v, ok := n.Config("slowlog-log-slower-than"); ok && v == "0" {
		f.support(recording.SourceServer, "slowlog-log-slower-than is 0: every command is logged", 0, "µs")
		f.Fix = append(f.Fix, "CONFIG SET slowlog-log-slower-than 10000")
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	f.See = []string{"https://redis.io/docs/latest/commands/monitor/", "https://redis.io/docs/latest/commands/info/"}
	return f
}

const (
	// monitorNs is what a command costs per MONITOR client: formatting, queueing and writing its line.
	monitorNs = 1000
	// monitorMinShare of the main thread is where MONITOR begins to be felt.
	monitorMinShare = 0.1
)

// monitorShare estimates the part of the main thread's time that MONITOR clients take.
func (n *Node) monitorShare(monitors int) float64 {
	return min(1, n.CommandsPerSecond()*float64(monitors)*monitorNs/1e9)
}

// monitored claims MONITOR's part of the time that calls waited for a loop that was busy with nothing else that is known. Its own
// output, and that of clients that do not read it fast enough, is among the bytes that were written.
func (n *Node) monitored(share float64) Claim {
	cores, _, ok := n.MainCores()
	if !ok || cores <= 0 {
		cores = 1
	}
	cl := n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.Suspect >= 0 {
			return n.Ledger.Suspects[s.Suspect].Kind == account.KindBulk
		}
		return isWaiting(s) && (!n.Hosted() || s.State == account.Busy || s.State == account.Unexplained)
	})
	cl.Ns = int64(float64(cl.Ns) * min(1, share/cores))
	return cl
}

func (c Claim) add(o Claim) Claim {
	return Claim{Calls: max(c.Calls, o.Calls), Ns: c.Ns + o.Ns, MaxNs: max(c.MaxNs, o.MaxNs)}
}

// supportTimeOf says how much of the server's time the commands took in the watch.
func (f *Finding) supportTimeOf(n *Node, ss []account.Suspect) {
	seen := map[string]bool{}
	for _, s := range ss {
		series := "cmdstat_" + strings.ToLower(strings.ReplaceAll(s.Command, " ", "|"))
		if usec := n.Growth(series + ".usec"); usec > 0 && !seen[series] {
			seen[series] = true
			f.support(recording.SourceServer, fmt.Sprintf("%s took %.1f %% of the server's time (%.0f calls)", s.Command, usec/1e4/n.Seconds(), n.Growth(series+".calls")),
				usec/1e6/n.Seconds(), "")
		}
	}
}

func introspectionFix(n *Node, ss []account.Suspect) []string {
	name, _, _ := strings.Cut(ss[0].Command, " ")
	from := n.from(ss)
	switch name {
	case "INFO":
		return []string{fmt.Sprintf("Ask INFO%s at most every 10-15 s, for the sections that are used (INFO stats, not INFO all), from one exporter.", from)}
	case "CLIENT":
		return []string{fmt.Sprintf("CLIENT LIST%s walks all clients: ask rarely, or CLIENT LIST ID … for a few; connected_clients is in INFO.", from)}
	case "SLOWLOG", "COMMANDLOG":
		return []string{fmt.Sprintf("SLOWLOG GET%s of at most some 100 entries, at most every 10 s; CONFIG SET slowlog-max-len 128", from)}
	case "MEMORY":
		return []string{fmt.Sprintf("MEMORY USAGE key SAMPLES 5%s (the default) instead of SAMPLES 0, which walks the whole value; better from a replica or an RDB file.", from)}
	default:
		return []string{fmt.Sprintf("Send %s%s rarely, or to a replica.", ss[0].Command, from)}
	}
}
