package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// oversizedPipeline: thousands of commands sent at once, or one command with thousands of keys, are served in a row
// while all other calls wait. No single command of a pipeline is slow, so SLOWLOG shows none of them.
var oversizedPipeline = Cause{
	ID:      "oversized-pipeline-or-multikey",
	Explain: explainOversized,
}

// readBytes is what a server reads at once (PROTO_IOBUF_LEN of server.h): a read of this length was not the last of its
// batch.
// Bound: server, PROTO_IOBUF_LEN.
const readBytes = 16 << 10

// batch is what one connection sent at once.
type batch struct {
	client, process string
	ops             facts.NameCounts // commands, by name
	calls           int
	args            int // most of one command
	bytes           int64
	works           facts.Spans
	longestNs       int64 // of one read
	more            bool  // the last read was full
	multi           bool  // one command with many keys
	transaction     bool  // its commands wait in the server until EXEC runs all of them at once: lua-or-multi-long
}

func (b *batch) oversized() bool {
	return (b.calls >= mainthread.MinOversizedBatch || b.multi) && !b.transaction
}

func (b *batch) who() string { return caller.ClientLabel(b.client, b.process) }

func (b *batch) op() string {
	if top := b.ops.Top(1); len(top) > 0 {
		return top[0]
	}
	return "?" // not even its name is known
}

func (b *batch) take(d recording.ActivityDetail, from, to int64) {
	b.works = append(b.works, facts.Span{FromNs: from, ToNs: to})
	if d.Sends {
		return
	}
	if d.Process != "" {
		b.process = d.Process
	}
	b.ops[d.Op] += d.Calls
	b.transaction = b.transaction || d.Op == "MULTI" || d.Op == "EXEC"
	b.calls, b.args, b.bytes = b.calls+d.Calls, max(b.args, d.Args), b.bytes+d.Bytes
	b.more = d.Bytes >= readBytes
	b.longestNs = max(b.longestNs, to-from)
}

func (b *batch) lastNs() int64 { return b.works[len(b.works)-1].ToNs }

// batches joins the activities of a server into what came at once on each connection.
func batches(n *facts.Node) []*batch {
	open := map[string]*batch{}
	var out []*batch
	for _, e := range n.Events(recording.SourceTap, recording.KindActivity) { // in order of time
		d := recording.DetailOf[recording.ActivityDetail](e)
		b := open[d.Client]
		if d.Client == "" || d.Sends && b == nil {
			continue
		}
		name, _, _ := strings.Cut(d.Op, " ")
		multi := d.Args > mainthread.MinOversizedBatch && mainthread.MultiKeyCommands[name]
		if !d.Sends && (b == nil || multi || b.multi || !b.more || e.TimeNs-b.lastNs() > int64(degree.Long)) {
			b = &batch{client: d.Client, multi: multi, ops: facts.NameCounts{}}
			open[d.Client] = b
			out = append(out, b)
		}
		b.take(d, e.TimeNs, e.TimeNs+e.DurationNs)
	}
	return out
}

func explainOversized(n *facts.Node) *Finding {
	var works facts.Spans
	var multi, piped []*batch
	for _, b := range batches(n) {
		if !b.oversized() {
			continue
		}
		works = append(works, b.works...)
		if b.multi {
			multi = append(multi, b)
		} else {
			piped = append(piped, b)
		}
	}
	served := facts.MergeSpans(works)
	if mainthread.LoopInstead(n, served) {
		return nil // what its commands set off takes the time: fewer of them at once take as much
	}
	others, own := 0, map[string]bool{}
	for _, b := range slices.Concat(multi, piped) {
		own[b.client] = true
	}
	w := mainthread.WaitsForSuspects(n,
		func(s account.Suspect) bool { return mainthread.KindOf(n, s) == mainthread.KindManyKeys })
	// What a segment waited for has one cause, this or another, where KindOf knows it.
	named := mainthread.WaitsForSuspects(n,
		func(s account.Suspect) bool { return mainthread.KindOf(n, s) != mainthread.KindOther })
	h := w.Claim(n.ClaimOf(func(a account.Account) facts.StateTimes {
		times := w.OfCall(a)
		times = append(times, served.TimesWithin(a, func(s account.Segment) bool {
			return !named.Matches(s.Suspect) && (s.Actor == account.Server && (s.State == account.Busy ||
				s.State == account.Exec || s.State == account.Blocked) || s.State == account.Unexplained)
		})...)
		if len(times) > 0 && !own[a.Call.Conn] {
			others++
		}
		return times
	}))
	if !h.Matters() {
		return nil
	}
	if len(works) == 0 {
		return loggedMulti(n, h)
	}
	f := finding(n, h.Claim)
	f.support(recording.SourceTap, float64(h.Calls), "calls", "%s waited while the server served such batches, up to "+
		"%s in one call; %d of them are calls of other clients", ofSlow(h.Calls, n), format.Brief(h.MaxNs), others)
	if len(piped) > 0 {
		f.supportPipelines(piped)
	}
	if len(multi) > 0 {
		f.supportMulti(multi)
	}
	f.FixSteps = oversizedFix(piped, multi)
	return f
}

// loggedMulti is for commands with thousands of keys that only the server's own logs show.
func loggedMulti(n *facts.Node, h mainthread.SuspectClaim) *Finding {
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	f.supportCommands(n, h.Suspects)
	f.support(worst.Source, float64(worst.ArgCount-1), "keys",
		"the largest is %s with %d keys", worst.Command, worst.ArgCount-1)
	f.supportWaits(n, h, worst.Command)
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	f.FixSteps = []remedy.Step{
		smallerBatches(fewerKeys(worst.Command + caller.FromText(n, h.Suspects[:1]))),
		batchesToReplica,
	}
	return f
}

func (f *Finding) supportPipelines(piped []*batch) {
	conns := facts.NameCounts{}
	for _, b := range piped {
		conns[b.who()]++
	}
	largest := slices.MaxFunc(piped, func(a, b *batch) int { return cmp.Compare(a.calls, b.calls) })
	f.support(recording.SourceTap, float64(largest.calls), "commands",
		"pipelines: %s, the largest of %d commands (%s) in %.1f MB, served in %s: %s", facts.TimesText(len(piped)),
		largest.calls, largest.op(), float64(largest.bytes)/1e6, counted(len(largest.works), "read"), conns.List(3))
}

func (f *Finding) supportMulti(multi []*batch) {
	conns, largest, longest := facts.NameCounts{}, multi[0], int64(0)
	for _, b := range multi {
		conns[b.who()]++
		longest = max(longest, b.longestNs)
		if b.args > largest.args {
			largest = b
		}
	}
	f.support(recording.SourceTap, float64(largest.args-1), "keys",
		"multi-key commands: %s, up to %s each, the largest %s with %d keys: %s", facts.TimesText(len(multi)),
		format.Brief(longest), largest.op(), largest.args-1, conns.List(3))
}

// batchesToReplica takes the batches away from the other callers.
var batchesToReplica = orElse(inApplication("to-a-replica", "Send batch jobs to a replica that only they use, or at "+
	"quiet hours"))

func oversizedFix(piped, multi []*batch) []remedy.Step {
	var parts []string
	if len(piped) > 0 {
		parts = append(parts, fmt.Sprintf("Send the pipelines of %s in pieces of some 100 commands, on few "+
			"connections at a time, and read the replies of each before the next (redis-py pipeline.execute(), Jedis "+
			"Pipeline.sync(), go-redis Pipelined)", format.Name(piped[0].who())))
	}
	if len(multi) > 0 {
		parts = append(parts, fewerKeys(multi[0].op()+" of "+multi[0].who()))
	}
	return []remedy.Step{smallerBatches(strings.Join(parts, ". ")), batchesToReplica}
}

func fewerKeys(command string) string {
	return "Give each " + format.Name(command) + " at most some 100 keys"
}

func smallerBatches(text string) remedy.Step {
	return inApplication("smaller-batches", "%s", text)
}
