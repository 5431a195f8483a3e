package cause

import (
	"fmt"
	"math"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

func (f *Finding) supportDemand(n *facts.Node, d mainthread.Demand) {
	switch {
	case d.Source == recording.SourceHost:
		f.support(d.Source, d.Total(), "of the time",
			"the main thread ran %.0f %% of the time and was in the run queue for another "+
				"%.0f %% (/proc/PID/schedstat): it slept %.0f %%", d.Run*100, d.Wait*100, (1-d.Total())*100)
	case d.Measured:
		f.support(d.Source, d.Total(), "of the time",
			"the event loop was busy %.0f %% of the time (eventloop_duration_sum), %.2f cores of CPU", d.Total()*100,
			d.Run)
	default:
		f.support(d.Source, d.Run, "cores", "the main thread used %.2f cores (INFO used_cpu)", d.Run)
	}
	if ops := mainthread.CommandsPerSecond(n); ops > 0 {
		f.support(recording.SourceServer, ops, "per second",
			"it served %.0f commands per second, %.1f µs of CPU time each", ops, d.Run*1e6/ops)
	}
	if top := mainthread.TopCommand(n); top.Calls > 0 && top.Usec >= notableShare*1e6*n.Seconds()*d.Run {
		f.support(recording.SourceServer, top.Usec, "µs",
			"%s took most of it: %.0f calls of %.1f µs, %.0f %% of the time (commandstats)", top.Name, top.Calls,
			top.Usec/top.Calls, top.Usec/1e4/n.Seconds())
	}
}

func saturation(n *facts.Node) *Finding {
	d, ok := mainthread.DemandOf(n)
	if !ok || d.Run < facts.SaturatedRun || d.Measured && d.Total() < facts.SaturatedDemand || !d.Measured &&
		d.Run < looseRun {
		return nil
	}
	heavy := mainthread.LongWorkShare(n) / d.Run
	if heavy >= minOtherWorkShare {
		return nil
	}
	own := d.Run / d.Total() // the rest of its demand went to the threads that had the CPU
	if c := mainthread.NeighbourCoresOf(n); c.Others > c.Callers &&
		d.Run+d.Wait*c.Callers/(c.Callers+c.Others) < facts.SaturatedDemand {
		return nil // without the other threads on its CPUs it would have time to spare
	}
	queue, known := n.Queue()
	if known && queue.Share() < hardlyWait && d.Run < facts.SaturatedDemand {
		return nil // it has just enough work: no call waits
	}
	f := finding(n, n.UnexplainedWaits())
	mostly := known && queue.Share() >= mostlyQueued
	share := queue.Share()
	if !mostly {
		share = max(share, assumedQueue)
	}
	if !d.Measured && (!mostly || heavy >= notableDoubt) {
		f.weaken(1)
	}
	f.loseOfCalls(n, share, queue.WaitNs)
	f.inAll(n, float64(queue.WaitNs)*mainthread.CommandsPerSecond(n)*n.Seconds())
	f.scale(own)
	f.supportDemand(n, d)
	switch {
	case mostly:
		f.support(recording.SourceProbe, float64(queue.WaitNs), "ns",
			"half of all calls wait in the queue for at least %s: the median is %s, "+
				"a round trip and the work of one call take %s", format.Brief(queue.WaitNs),
			format.Brief(queue.MedianNs),
			format.Brief(queue.UnqueuedNs))
	case known:
		f.doubt(recording.SourceProbe, float64(queue.MedianNs), "ns",
			"calls hardly wait: the median is %s, a round trip and the work of one call take %s",
			format.Brief(queue.MedianNs), format.Brief(queue.UnqueuedNs))
	}
	f.blameLoads(n)
	f.doubtSaturation(n, d, heavy)
	f.doubtCrowd(n)
	f.FixSteps = saturationFix(n)
	return f
}

// doubtCrowd: by Little's law as many calls are queued as are served while one waits. The server does not show whether
// an oversized pool keeps them there.
func (f *Finding) doubtCrowd(n *facts.Node) {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	open, known := n.Series(series.ConnectedClients).Last()
	if !ok || !known || n.Rec.SeesCalls() {
		return
	}
	queued := min(mainthread.CommandsPerSecond(n)*float64(kept.P50Ns)/1e9, open)
	if open < minOversizedConns || queued < minOversizedQueue {
		return
	}
	f.weaken(1)
	f.doubt(recording.SourceServer, queued, "calls",
		"up to %.0f calls are queued at a time, on %.0f connections: only the tap shows whether they "+
			"come from one oversized pool (pool-oversized)", queued, open)
}

// doubtSaturation adds signs of another reason why the thread is busy.
func (f *Finding) doubtSaturation(n *facts.Node, d mainthread.Demand, heavy float64) {
	if heavy >= notableDoubt {
		f.doubt(recording.SourceServer, heavy, "share",
			"%.0f %% of its busy time went to commands of at least 1 ms, or to its own background jobs", heavy*100)
	}
	if d.Wait >= notableDoubt {
		f.doubt(recording.SourceHost, d.Wait, "of the time",
			"for %.0f %% of the time it was in the run queue: with its own CPU it would serve more", d.Wait*100)
	}
	if bytes := mainthread.BytesPerCommand(n); bytes >= bulkBytes {
		f.weaken(1)
		f.doubt(recording.SourceServer, bytes, "bytes",
			"a command and its reply have %.0f kB on average: the thread is busy copying bytes", bytes/1e3)
	}
	if c := connection.ChurnOf(n); c.PerSecond >= burdenChurn && c.Share() >= burdenChurnShare {
		f.weaken(1)
		f.doubt(recording.SourceServer, c.PerSecond, "per second",
			"clients open %.0f connections per second: accepting and closing them is part of its work", c.PerSecond)
	}
	if throttled := float64(mainthread.StateNs(n,
		recording.KindThrottled)) / 1e9 / n.Seconds(); throttled >= burdenThrottled {
		f.weaken(1)
		f.doubt(recording.SourceHost, throttled, "of the time",
			"its cgroup was throttled for %.0f %% of the time: the quota is the limit, not the core", throttled*100)
	}
}

func saturationFix(n *facts.Node) (fix []remedy.Step) {
	reads := n.Growth(series.TotalReadsProcessed)
	if reads > 0 && n.Growth(series.TotalCommandsProcessed)/reads < pipelined {
		fix = append(fix, remedy.Step{
			ID: "pipeline", Kind: remedy.Change, Restart: "the application",
			Text: fmt.Sprintf("Use pipelines: each read brings %.1f commands now; with a pipeline of 10 a core serves "+
				"3-5 times as many cheap ones", n.Growth(series.TotalCommandsProcessed)/reads),
		})
	}
	if top := mainthread.TopCommand(n); top.Calls > 0 && top.Usec/top.Calls >= dearCommandUsec {
		cheaper := remedy.Step{
			ID: "cheaper-command", Kind: remedy.Change, Restart: "the application",
			Text: fmt.Sprintf("Make %s cheaper or rarer (smaller keys, or keep its result in a key for some time): "+
				"%.0f µs each, %.0f times per second", format.Name(top.Name), math.Round(top.Usec/top.Calls),
				top.Calls/n.Seconds()),
		}
		fix = append([]remedy.Step{cheaper}, fix...)
	}
	cpus, _ := n.Series(series.CPUsAllowed).Last()
	if n.ConfigInt("io-threads") == 1 && cpus >= cpusForIOThreads {
		fix = append(fix, remedy.ConfigSet(n, "more-io-threads", "io-threads",
			fmt.Sprintf("%.0f", min(cpus-1, mostIOThreads)),
			fmt.Sprintf("It has %.0f CPUs: I/O threads then read and write the sockets", cpus)))
	}
	return append(fix, remedy.Step{
		ID: "more-servers", Kind: remedy.Change,
		Text: "Spread the keys over more servers (cluster mode), or send reads to replicas",
	}, remedy.Step{
		ID: string(remedy.CacheHotKeys), Kind: remedy.Change, Restart: "the application",
		Text: "Cache the most requested keys in the callers (client-side caching: CLIENT TRACKING, from Redis 6.0)",
	})
}

const (
	// mostlyQueued of a call's time in the queue is the queue's own fault.
	// Bound: majority, of the median call's time.
	mostlyQueued = 0.5
	// assumedQueue is the least share of the callers' time that a saturated thread is taken to cost where no queue is
	// seen.
	// Bound: guess.
	assumedQueue = 0.5
	// burdenChurn per second, with burdenChurnShare of the callers' time, is part of what keeps the thread busy.
	// Bound: guess.
	burdenChurn      = 50
	burdenChurnShare = 0.2
	// burdenThrottled: where the cgroup was throttled for more of the time, the quota is the limit.
	// Bound: guess.
	burdenThrottled = 0.05
)

// What is said of a saturated thread, and advised.
const (
	// notableShare of its time in one command, and notableDoubt of it lost, are worth a line.
	// Bound: arithmetic, they decide what is listed.
	notableShare = 0.2
	notableDoubt = 0.1
	// pipelined: with fewer commands per read, pipelines are advised.
	// Bound: arithmetic, it is part of an advice.
	pipelined = 2
	// dearCommandUsec is from when on a command is worth to be made cheaper.
	// Bound: arithmetic, it is part of an advice.
	dearCommandUsec = 10
	// cpusForIOThreads is with how many CPUs I/O threads are advised.
	// Bound: server, redis.conf advises io-threads on machines with at least four cores.
	cpusForIOThreads = 4
	// mostIOThreads are advised.
	// Bound: guess.
	mostIOThreads = 4
)

// looseRun is how busy a saturated thread is by INFO alone, which does not count waits.
// Bound: guess, below SaturatedDemand by some waits.
const looseRun = 0.85

// hardlyWait: calls that wait for less than this share of their time do not wait for the thread.
// Bound: guess.
const hardlyWait = 0.25

// bulkBytes is the mean length of a command and its reply from which the thread is busy copying.
// Bound: guess.
const bulkBytes = 32 << 10

// Bounds that several causes of a lack of CPU time share.
const (
	// minRunQueueShare is the least share of its demand for CPU that a thread waits in the run queue before slow calls
	// are attributed to the scheduler: on a machine that is merely busy a few calls are delayed now and then.
	// Bound: guess.
	minRunQueueShare = 0.3
	// mostOfRunQueue: who had the CPU for more of the waits is their reason.
	// Bound: majority, of the waits.
	mostOfRunQueue    = 0.5
	minIOThreadCores  = 0.1 // cores, all I/O threads together: below it they disturb nobody. Bound: guess.
	minOversizedConns = 256 // of one process, in use. Bound: guess.
	minOversizedQueue = 128 // calls of that process in flight at a time. Bound: guess.
)

// minOtherWorkShare: of the busy time that went to slow commands or jobs of the server itself.
// Bound: majority, of the busy time.
const minOtherWorkShare = 0.5
