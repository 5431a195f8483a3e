package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// processFrozen: the server was stopped by SIGSTOP, a debugger or the freezer. Its kernel still accepts connections and
// acknowledges data, but nothing answers.
var processFrozen = Cause{
	ID:      "process-frozen",
	Class:   ServerStall,
	Explain: explainFrozen,
}

func explainFrozen(n *facts.Node) *Finding {
	if t, ok := nodes.TakeoverOf(n); ok && t.StoppedNs > 0 && (t.NewMaster != nil || t.TakenNs == 0 && !t.Pending) {
		return nil // another node took over meanwhile: what callers wait for since is not this process
	}
	cl := n.InState(account.Frozen)
	if cl.Ns == 0 {
		return nil
	}
	f := finding(n, cl)
	stops, cgroup, pid := 0, "", 0
	for _, e := range n.Events(recording.SourceHost, recording.KindFrozen) {
		stops++
		d := recording.DetailOf[recording.ThreadDetail](e)
		if d.Cgroup != "" {
			cgroup = d.Cgroup
		}
		if d.TID > 0 {
			pid = d.TID // of the main thread: the process's own
		}
	}
	if w := mainthread.SumWaits(mainthread.Exact(n, account.Frozen)); w.Count > 0 {
		f.support(recording.SourceTap, float64(w.Count), "stops", "the main thread was stopped %s, %s in all, up to "+
			"%s at a time", facts.TimesText(w.Count), format.Brief(w.Ns), format.Brief(w.MaxNs))
	} else {
		f.support(recording.SourceHost, float64(stops), "stops", "the main thread was stopped %s, %s in all",
			facts.TimesText(stops), format.Brief(mainthread.StateNs(n, recording.KindFrozen)))
	}
	f.support(mainthread.StateSource(n), float64(cl.Calls), "calls",
		"%s waited for it, up to %s", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	if cgroup != "" {
		f.Title = "The server's cgroup was frozen"
	}
	f.FixSteps = frozenFix(n, cgroup, pid)
	return f
}

// frozenFix lets the process go on, and finds who stopped it. Which comes first depends on whether it still stands.
func frozenFix(n *facts.Node, cgroup string, pid int) []remedy.Step {
	goOn := remedy.Step{
		ID: "let-it-go-on", Kind: remedy.Command, Text: "If it is stopped now, let it go on",
		Risk: "a debugger or a checkpoint that stopped it may need it to stand still",
	}
	find := remedy.Step{
		ID: "find-who-stops-it", Kind: remedy.Command,
		Text: "Find what sends SIGSTOP to it or attaches a debugger, and end that. This names who sends signals",
		Command: "bpftrace -e 'tracepoint:signal:signal_generate /args->sig == 19/ " +
			`{ printf("%s[%d] -> %d\n", comm, pid, args->pid); }'`,
	}
	if goOn.Command, _ = remedy.GoOn(n, cgroup, pid); goOn.Command == "" {
		goOn.Kind, goOn.Text = remedy.Change, "If it is stopped now, send it SIGCONT"
	}
	if cgroup != "" {
		find.Kind, find.Command = remedy.Change, ""
		find.Text = fmt.Sprintf("Find what freezes %s, and end that: docker pause, a checkpoint, a backup job",
			format.Name(cgroup))
	}
	if stillStopped(n) {
		return []remedy.Step{goOn, find}
	}
	return []remedy.Step{find, goOn}
}

// stillStopped reports whether the server stood still when the watch ended: until then, as far as the host was read.
func stillStopped(n *facts.Node) bool {
	var end, read int64
	for _, source := range []string{recording.SourceHost, recording.SourceTap} {
		for _, e := range n.Events(source, recording.KindFrozen) {
			end = max(end, e.TimeNs+e.DurationNs)
		}
	}
	if s := n.Series(series.MainRun); len(s) > 0 {
		read = s[len(s)-1].TimeNs
	}
	return end > 0 && (end >= n.EndNs || read > 0 && end >= read)
}
