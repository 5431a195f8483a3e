package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// syncFreeOfBigKey: deleting, overwriting, expiring or evicting one big key frees millions of elements in the main
// thread.
var syncFreeOfBigKey = Cause{
	ID:      "sync-free-of-big-key",
	Class:   ServerStall,
	Changes: []string{"lazyfree-*"},
	Explain: explainSyncFree,
}

func explainSyncFree(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindFree && !lazy(n, s) || mainthread.KindOf(n, s) == mainthread.KindFree
	})
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	what := worst.Text
	if worst.Kind == account.KindCommand {
		what = worst.Command
		f.Title = worst.Command + " frees a big key in the main thread, element by element"
		f.supportCommands(n, h.Suspects)
	}
	f.supportWaits(n, h, what)
	if fell := n.MemoryFall(worst); fell >= mainthread.MinFreeBytes {
		f.support(recording.SourceServer, fell, "bytes", "used_memory fell by %.0f MB between two polls", fell/1e6)
	} else {
		f.doubt(recording.SourceServer, 0, "bytes",
			"used_memory was not seen to fall (it may have been filled again between two polls)")
		if !worst.Busy {
			f.weaken(1)
		}
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	f.FixSteps = freeFix(n, worst)
	return f
}

// lazy reports whether the server frees expired or evicted keys in the background.
func lazy(n *facts.Node, s account.Suspect) bool {
	name := "lazyfree-lazy-expire"
	if strings.Contains(s.Text, "evicted") {
		name = "lazyfree-lazy-eviction"
	}
	v, _ := n.Config(name)
	return v == "yes"
}

// freeFix says how to free it in the background, by the parameters that this server has (6.0 for user-del, 4.0 for the
// others).
func freeFix(n *facts.Node, s account.Suspect) []remedy.Step {
	name, _, _ := strings.Cut(s.Command, " ")
	from := caller.FromText(n, []account.Suspect{s})
	expire := remedy.ConfigSet(n, "lazy-expire", "lazyfree-lazy-expire", "yes",
		"Let keys that expire be freed in a background thread")
	switch {
	case s.Kind == account.KindFree && strings.Contains(s.Text, "evicted"):
		return []remedy.Step{remedy.ConfigSet(n, "lazy-eviction", "lazyfree-lazy-eviction", "yes",
			"Let keys that are evicted be freed in a background thread")}
	case s.Kind == account.KindFree:
		return []remedy.Step{expire}
	case name == "DEL":
		return delFix(n, from)
	case name == "GETDEL":
		return []remedy.Step{unlink("Instead of GETDEL"+from+" read the value, then UNLINK it", false)}
	case strings.Contains(name, "EXPIRE"): // of a time that is past, it deletes
		return []remedy.Step{expire, unlink(format.Name(name)+from+" sets a time that is past: UNLINK instead", true)}
	}
	return []remedy.Step{
		remedy.ConfigSet(n, "lazy-server-del", "lazyfree-lazy-server-del", "yes", fmt.Sprintf(
			"%s%s replaces a big value: let the old one be freed in a background thread", format.Name(name), from)),
		unlink("UNLINK the old key before it is replaced", true),
	}
}

// delFix is for DEL: for all callers where the server has a parameter for it, or in the caller.
func delFix(n *facts.Node, from string) (fix []remedy.Step) {
	if facts.ServerAtLeast(n, 6, 0) {
		lazy := remedy.ConfigSet(n, "lazy-user-del", "lazyfree-lazy-user-del", "yes",
			"Let DEL of all callers free in a background thread, as UNLINK does")
		lazy.Since = "Redis 6.0"
		fix = append(fix, lazy)
	}
	return append(fix, unlink("UNLINK instead of DEL"+from+": it frees in a background thread", len(fix) > 0))
}

func unlink(text string, or bool) remedy.Step {
	return remedy.Step{
		ID: "unlink", Kind: remedy.Change, Or: or, Text: text, Since: "Redis 4.0", Restart: "the application",
	}
}
