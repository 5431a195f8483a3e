package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// flushSync: FLUSHALL and FLUSHDB free every key in the main thread unless configured otherwise.
var flushSync = Cause{
	ID:      "flush-sync",
	Class:   ServerStall,
	Changes: []string{"FLUSHALL", "FLUSHDB", "lazyfree-lazy-user-flush"},
	Explain: explainFlush,
}

func explainFlush(n *facts.Node) *Finding {
	h := mainthread.ClaimOfKind(n, mainthread.KindFlush)
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	f.Title = worst.Command + " frees all keys in the main thread, and all other calls wait for it"
	f.supportCommands(n, h.Suspects)
	f.supportWaits(n, h, worst.Command)
	if fell := n.MemoryFall(worst); fell > mainthread.MinFreeBytes {
		f.support(recording.SourceServer, fell, "bytes", "used_memory fell by %.0f MB", fell/1e6)
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	sync := false
	if v, ok := n.Config("lazyfree-lazy-user-flush"); ok && v == "no" {
		f.support(recording.SourceServer, 0, "", "lazyfree-lazy-user-flush is no")
		sync = true
	}
	f.FixSteps = flushFix(n, h.Suspects, sync)
	return f
}

// flushFix frees in the background: for all callers where the server has a parameter that is off, or in the caller.
func flushFix(n *facts.Node, ss []account.Suspect, sync bool) (fix []remedy.Step) {
	if sync {
		lazy := remedy.ConfigSet(n, "lazy-user-flush", "lazyfree-lazy-user-flush", "yes",
			"Let FLUSHALL and FLUSHDB of all callers free in a background thread")
		lazy.Since = "Redis 6.2"
		fix = append(fix, lazy)
	}
	return append(fix, remedy.Step{
		ID: "flush-async", Kind: remedy.Change, Or: sync, Since: "Redis 4.0", Restart: "the application",
		Text: fmt.Sprintf("Send %s ASYNC%s: it frees in a background thread", format.Name(ss[0].Command),
			caller.FromText(n, ss)),
	})
}
