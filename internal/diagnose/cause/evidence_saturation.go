package cause

import (
	"fmt"
	"math"

	"slowpath/internal/diagnose/degree"
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
	if top := mainthread.TopCommand(n); takesMost(n, d, top) {
		f.support(recording.SourceServer, top.Usec, "µs",
			"%s took most of it: %.0f calls of %.1f µs, %.0f %% of the time (commandstats)", top.Name, top.Calls,
			top.Usec/top.Calls, top.Usec/1e4/n.Seconds())
	}
}

// takesMost reports whether most of the main thread's work is one command.
func takesMost(n *facts.Node, d mainthread.Demand, top mainthread.CommandUse) bool {
	return top.Calls > 0 && top.Usec >= degree.Most*1e6*n.Seconds()*d.Run
}

func saturation(n *facts.Node) *Finding {
	d, ok := mainthread.DemandOf(n)
	if !ok || d.Run < facts.SaturatedRun || d.Total() < facts.SaturatedDemand {
		return nil
	}
	heavy := mainthread.LongWorkShare(n) / d.Run
	if heavy >= degree.Most {
		return nil
	}
	own := d.Run / d.Total() // the rest of its demand went to the threads that had the CPU
	if c := mainthread.NeighbourCoresOf(n); c.Others > c.Callers &&
		d.Run+d.Wait*c.Callers/(c.Callers+c.Others) < facts.SaturatedDemand {
		return nil // without the other threads on its CPUs it would have time to spare
	}
	queue, known := n.Queue()
	mostly := known && queue.Share() >= degree.Most
	if known && !mostly && d.Run < facts.SaturatedDemand {
		return nil // it has just enough work: no call waits
	}
	f := finding(n, n.UnexplainedWaits())
	share := degree.Most // where no queue is seen
	if known {
		share = queue.Share()
	}
	if !d.Measured && (!mostly || heavy >= degree.Part) {
		f.weaken(1)
	}
	f.loseOfCalls(n, share, queue.WaitNs)
	f.inAll(n, float64(queue.WaitNs)*mainthread.CommandsPerSecond(n)*n.Seconds())
	f.scale(own)
	f.supportDemand(n, d)
	switch {
	case mostly:
		f.support(recording.SourceProbe, float64(queue.WaitNs), "ns",
			"half of all calls wait in the queue for at least %s: the median is %s, a round trip and the work of one "+
				"call take %s", format.Brief(queue.WaitNs), format.Brief(queue.MedianNs),
			format.Brief(queue.UnqueuedNs))
	case known:
		f.doubt(recording.SourceProbe, float64(queue.MedianNs), "ns",
			"calls hardly wait: the median is %s, a round trip and the work of one call take %s",
			format.Brief(queue.MedianNs), format.Brief(queue.UnqueuedNs))
	}
	f.blameLoads(n)
	f.doubtSaturation(n, d, heavy)
	f.doubtCrowd(n)
	f.FixSteps = saturationFix(n, d)
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
	if queued < minOversizedQueue {
		return
	}
	f.weaken(1)
	f.doubt(recording.SourceServer, queued, "calls",
		"up to %.0f calls are queued at a time, on %.0f connections: only the tap shows whether they "+
			"come from one oversized pool (pool-oversized)", queued, open)
}

// doubtSaturation adds signs of another reason why the thread is busy.
func (f *Finding) doubtSaturation(n *facts.Node, d mainthread.Demand, heavy float64) {
	if heavy >= degree.Part {
		f.doubt(recording.SourceServer, heavy, "share",
			"%.0f %% of its busy time went to commands of at least 1 ms, or to its own background jobs", heavy*100)
	}
	if d.Wait >= degree.Part {
		f.doubt(recording.SourceHost, d.Wait, "of the time",
			"for %.0f %% of the time it was in the run queue: with its own CPU it would serve more", d.Wait*100)
	}
	bytes := mainthread.BytesPerCommand(n) // to copy MinBulkBytes takes a millisecond
	if ms := bytes * mainthread.CommandsPerSecond(n) / mainthread.MinBulkBytes; ms >= degree.Most*1e3*d.Run {
		f.weaken(1)
		f.doubt(recording.SourceServer, bytes, "bytes",
			"a command and its reply have %.0f kB on average: the thread is busy copying bytes", bytes/1e3)
	}
	if c := connection.ChurnOf(n); c.PerSecond >= degree.Many && c.Share() >= degree.Part {
		f.weaken(1)
		f.doubt(recording.SourceServer, c.PerSecond, "per second",
			"clients open %.0f connections per second: accepting and closing them is part of its work", c.PerSecond)
	}
	throttled := float64(mainthread.StateNs(n, recording.KindThrottled)) / 1e9 / n.Seconds()
	if throttled >= degree.Part {
		f.weaken(1)
		f.doubt(recording.SourceHost, throttled, "of the time",
			"its cgroup was throttled for %.0f %% of the time: the quota is the limit, not the core", throttled*100)
	}
}

func saturationFix(n *facts.Node, d mainthread.Demand) (fix []remedy.Step) {
	top := mainthread.TopCommand(n)
	if takesMost(n, d, top) {
		fix = append(fix, inApplication("cheaper-command", "Make %s cheaper or rarer (smaller keys, or "+
			"keep its result in a key for some time): %.0f µs each, %.0f times per second", format.Name(top.Name),
			math.Round(top.Usec/top.Calls), top.Calls/n.Seconds()))
	}
	commands, reads := n.Growth(series.TotalCommandsProcessed), n.Growth(series.TotalReadsProcessed)
	if reads > 0 && commands < degree.Several*reads {
		fix = append(fix, inApplication("pipeline", "Use pipelines: each read brings %.1f commands now; "+
			"with a pipeline of 10 a core serves 3-5 times as many cheap ones", commands/reads))
	}
	cpus, _ := n.Series(series.CPUsAllowed).Last()
	if n.ConfigInt("io-threads") == 1 && cpus >= cpusForIOThreads {
		fix = append(fix, remedy.ConfigSet(n, "more-io-threads", "io-threads",
			fmt.Sprintf("%.0f", min(cpus-1, cpusForIOThreads)),
			fmt.Sprintf("It has %.0f CPUs: I/O threads then read and write the sockets", cpus)))
	}
	return append(fix, change("more-servers", "Spread the keys over more servers (cluster mode), or send reads to "+
		"replicas"), inApplication(string(remedy.CacheHotKeys), "Cache the most requested keys in the callers "+
		"(client-side caching: CLIENT TRACKING, from Redis 6.0)"))
}

const (
	// cpusForIOThreads is with how many CPUs I/O threads are advised, and how many of them at most.
	// Bound: server, redis.conf advises io-threads on machines with at least four cores.
	cpusForIOThreads = 4
	// minOversizedQueue is the least number of calls in flight at a time, each on a connection, of a pool that is too
	// large.
	// Bound: guess, the calls per second of a saturated server, by the number of calls in flight, would measure it.
	minOversizedQueue = 128
	minOversizedConns = minOversizedQueue // of one process, in use
	mostOfRunQueue    = degree.Most
	minOtherWorkShare = degree.Most
	mostlyQueued      = degree.Most
	notableDoubt      = degree.Part
)
