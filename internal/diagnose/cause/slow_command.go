package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// slowCommand: a command with work that grows with the data holds the only thread, and all other calls wait.
var slowCommand = Cause{
	ID:      "slow-command",
	Class:   ServerStall,
	Explain: explainSlowCommand,
}

func explainSlowCommand(n *facts.Node) *Finding {
	h, copiesNs := heldBySlowCommands(n)
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	f.Title = worst.Command + " holds the event loop, and all other calls wait for it"
	f.supportCommands(n, h.Suspects)
	f.supportWaits(n, h, worst.Command)
	if worst.Busy && worst.Source != recording.SourceTap {
		f.support(recording.SourceHost, float64(worst.DurationNs), "ns",
			"the main thread was on the CPU all that time: the time is the command's own")
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	if copiesNs > 0 {
		f.doubt(recording.SourceHost, float64(copiesNs), "ns",
			"while a child process saved, page copies (minor faults of the main thread) made up to %s of the "+
				"wait of one call: that part is not counted here", format.Brief(copiesNs))
	}
	name, _, _ := strings.Cut(worst.Command, " ")
	f.FixSteps = slowCommandFix(n, name, worst)
	return f
}

// heldBySlowCommands leaves out the time of page copies in these commands while a child process saved: without it they
// would have been that much shorter, and cow-faults-after-fork claims it. mostNs is the most that was left out of one
// wait.
func heldBySlowCommands(n *facts.Node) (h mainthread.SuspectClaim, mostNs int64) {
	c := hosts.PageCopiesOf(n)
	if !c.Matters() {
		return mainthread.ClaimOfKind(n, mainthread.KindSlowCommand), 0
	}
	h = mainthread.ClaimOfSuspectsExcept(n,
		func(s account.Suspect) bool { return mainthread.KindOf(n, s) == mainthread.KindSlowCommand },
		func(s account.Segment) int64 {
			ns := c.NsWithin(s.FromNs, s.ToNs)
			mostNs = max(mostNs, ns)
			return ns
		})
	return h, mostNs
}

// instead says per command what to use in its place.
var instead = map[string]string{
	"KEYS":     "SCAN with COUNT 100-1000 and a pause after each step, in which others run",
	"SMEMBERS": "SSCAN in steps of COUNT 100-1000",
	"HGETALL":  "HSCAN in steps, or HMGET of the fields that you need",
	"HKEYS":    "HSCAN in steps (redis >= 7.4: with NOVALUES)",
	"HVALS":    "HSCAN in steps",
	"LRANGE":   "LRANGE over windows of 100-1000 elements",
	"ZRANGE":   "ZRANGE over windows of 100-1000 elements, or ZSCAN",
	"LREM":     "a set or a sorted set, where removing one element is O(log N)",
	"LINSERT":  "a sorted set, where an insert in the middle is O(log N)",
	"LINDEX":   "LINDEX near the ends, or a sorted set",
	"LPOS":     "a set in addition to the list",
	"SORT":     "a sorted set, or sorting in the client",
	"SCAN":     "a COUNT of 100-1000",
	"SSCAN":    "a COUNT of 100-1000",
	"HSCAN":    "a COUNT of 100-1000",
	"ZSCAN":    "a COUNT of 100-1000",
	"SAVE":     "BGSAVE",
	"DEBUG":    "nothing: DEBUG has no place in production (ACL SETUSER … -debug, enable-debug-command no)",
	"BITCOUNT": "BITCOUNT over ranges, or counters in addition to the bitmap",
	"MGET":     "MGET of at most some 100 keys each",
	"MSET":     "MSET of at most some 100 keys each",
	"DEL":      "UNLINK of at most some 100 keys each",
	"CLUSTER": "fewer topology refreshes in the clients, from fewer nodes; and a server " +
		">= 6.2, where CLUSTER NODES costs a twentieth",
	"FUNCTION":  "loading functions once, at deployment",
	"RANDOMKEY": "a set of the keys, with SRANDMEMBER",
}

func slowCommandFix(n *facts.Node, name string, s account.Suspect) []remedy.Step {
	use, known := instead[name]
	if !known {
		use = "smaller keys, or the same work in steps"
		if strings.HasSuffix(name, "STORE") || strings.HasPrefix(name, "SUNION") || strings.HasPrefix(name, "SINTER") ||
			strings.HasPrefix(name, "SDIFF") || strings.HasPrefix(name, "Z") {
			use = "smaller sets, or the same work on a replica (replica-read-only " +
				"no is not needed for reads) or in the client"
		}
	}
	fix := []remedy.Step{
		inApplication("in-steps", "Instead of %s%s use %s", format.Name(s.Command),
			caller.FromText(n, []account.Suspect{s}), use),
	}
	if name != "CLUSTER" && name != "SAVE" {
		fix = append(fix, orElse(inApplication("to-a-replica", "Send commands that must walk everything to a replica "+
			"that only they use")))
	}
	forbid, ok := remedy.Forbid(n, s.Command, caller.UserOf(n, s))
	if ok && name != "CLUSTER" { // clients of a cluster cannot do without it
		fix = append(fix, forbid)
	}
	return fix
}
