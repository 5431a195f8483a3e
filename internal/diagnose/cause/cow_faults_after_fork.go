package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// cowFaultsAfterFork: while the child of a snapshot lives, the first write to each page faults, and the kernel copies
// the page in the middle of the command. Catalogue J2.
var cowFaultsAfterFork = Cause{
	ID:    "cow-faults-after-fork",
	Title: "While a snapshot is saved, writes pay for copies of the pages that they touch (copy on write)",
	Layer: "persistence",
	Needs: Needs{
		T0: "current_cow_size and rdb_last_cow_size (a hint)",
		T1: "minor faults of the main thread while a child process lives, many times those without, and their part " +
			"of its CPU time",
		T2: "slow calls that waited for commands that ran meanwhile",
	},
	Explain: explainCow,
}

const (
	// copyNs is what a first write to a page of 4 kB takes where nothing tells it: the fault, the copy and the cache
	// misses after it. Measured 3.6-4.5 µs in a virtual machine on an AMD EPYC (the main thread's CPU time in the
	// kernel against its faults, in the lab's incident of this name).
	copyNs    = 3000
	copyMaxNs = 20_000 // of a page of 4 kB, anywhere
	// copyShare of the main thread's CPU time while a child lives, from where on the copies are felt.
	copyShare = 0.15
	// aroundNs is how far apart the looks of two sources may be: INFO and the host's files are not read at the same
	// time.
	aroundNs = int64(200e6)
	// copyTimes as many faults with a child as without: growing memory faults as well.
	copyTimes = 3
)

// Copies are the faults of the main thread.
type Copies struct {
	withChild, without  float64 // seconds
	faults, faultsAlone float64 // in these
	runNs               float64 // CPU time while a child lived
	eachNs              float64 // of one fault
	measured            bool    // eachNs is of this recording
	steps               []copyStep
}

// copyStep is a stretch in which a child lived, with the part of the main thread's CPU time that went into copies.
type copyStep struct {
	span
	share float64
}

func (c Copies) share() float64 { return min(1, c.faults*c.eachNs/max(c.runNs, 1)) }

// perSecond is how often the main thread faulted while a child lived, and without one.
func (c Copies) perSecond() (with, alone float64) {
	return c.faults / max(c.withChild, 1e-9), c.faultsAlone / max(c.without, 1e-9)
}

// felt reports whether copies took a good part of the main thread's time: not where it faults as often without a child,
// since its memory grows then.
func (c Copies) felt() bool {
	with, alone := c.perSecond()
	return c.withChild > 0 && c.share() >= copyShare && (c.without == 0 || with >= copyTimes*alone)
}

func (n *Node) copies() (c Copies) {
	faults, run := n.Host("main.minflt"), n.Host("main.run_ns")
	c.eachNs = copyNs
	if beyond, ok := n.kernelBeyond(); ok && faults.Growth() > 0 {
		c.eachNs, c.measured = min(beyond/faults.Growth(), copyMaxNs), true
	}
	for i := 1; i < len(faults); i++ {
		from, to := faults[i-1].TimeNs, faults[i].TimeNs
		grown, seconds := faults[i].Value-faults[i-1].Value, float64(to-from)/1e9
		if !n.childLived(from, to) {
			c.without += seconds
			c.faultsAlone += grown
			continue
		}
		r0, _ := run.At(from)
		r1, _ := run.At(to)
		c.withChild += seconds
		c.faults += grown
		c.runNs += r1 - r0
		c.steps = append(c.steps, copyStep{span{from, to}, min(1, grown*c.eachNs/max(r1-r0, 1))})
	}
	return c
}

// childLived reports whether a child saved or rewrote at the begin or the end of a stretch.
func (n *Node) childLived(from, to int64) bool {
	for _, name := range []string{"rdb_bgsave_in_progress", "aof_rewrite_in_progress"} {
		s := n.Info(name)
		for at := from; at <= to+aroundNs; at += aroundNs {
			if v, _ := s.At(at); v > 0 {
				return true
			}
		}
	}
	for _, e := range n.Events(recording.SourceServer, recording.KindFork) {
		if window := recording.DetailOf[recording.ForkDetail](e).WindowNs; e.TimeNs < to && e.TimeNs+max(window,
			e.DurationNs) > from {
			return true
		}
	}
	if len(n.Info("rdb_bgsave_in_progress")) > 0 {
		return false // INFO is asked more often than children are counted
	}
	v, _ := n.Host("children.count").At(to)
	return v > 0
}

// in is the part of a stretch of the main thread's work that went into copies, in nanoseconds.
func (c Copies) in(from, to int64) (ns int64) {
	for _, s := range c.steps {
		if w := min(to, s.to) - max(from, s.from); w > 0 {
			ns += int64(s.share * float64(w))
		}
	}
	return ns
}

func explainCow(n *Node) *Finding {
	c := n.copies()
	if !c.felt() {
		return nil
	}
	perSecond, alone := c.perSecond()
	cl := n.claimOf(func(a account.Account) (ns int64) {
		for _, s := range a.Segments {
			if s.Actor == account.Server && (s.State == account.Busy || s.State == account.Exec) ||
				s.State == account.Unexplained && a.Call.Source == recording.SourceProbe {
				ns += c.in(s.FromNs, s.ToNs)
			}
		}
		return ns
	})
	if !cl.matters() {
		return nil
	}
	f := n.finding(cl, 0.85)
	f.support(recording.SourceHost, fmt.Sprintf("while a child saved (%.0f s of the watch) the main thread had %.0f "+
		"minor faults per second, %s", c.withChild, perSecond, c.aloneText(alone)), perSecond, "per second")
	if c.measured {
		f.Confidence = 0.92
		f.support(recording.SourceServer, fmt.Sprintf("they took %.0f %% of its CPU time: its time in the kernel "+
			"beyond sockets and forks is %s for each", 100*c.share(), dur(int64(c.eachNs))), c.share(),
			"of its CPU time")
	} else {
		f.support(recording.SourceHost, fmt.Sprintf("at %s for each copy of a page, as measured elsewhere, they took "+
			"%.0f %% of its CPU time", dur(copyNs), 100*c.share()), c.share(), "of its CPU time")
	}
	most, _ := n.Info("current_cow_size").Max()
	if lastCow, _ := n.Info("rdb_last_cow_size").Max(); lastCow > most {
		most = lastCow
	}
	if most > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.0f MB were copied for one snapshot (current_cow_size, "+
			"rdb_last_cow_size)", most/1e6), most, "bytes")
	}
	f.support(recording.SourceTap, fmt.Sprintf("%d of %d slow calls were executed, or waited for others that were, "+
		"meanwhile; copies made up to %s of one call", cl.Calls, len(n.Ledger.Slow), dur(cl.MaxNs)), float64(cl.Calls),
		"calls")
	if c.without > 0 {
		f.Confidence += 0.03
	}
	if faults := n.Host("main.majflt").Growth(); faults > 0 {
		f.Confidence -= 0.3
		f.doubt(recording.SourceHost, fmt.Sprintf("%.0f pages had to be read from disk as well (major faults)", faults),
			faults, "faults")
	}
	if forks := n.held(func(s account.Suspect) bool { return s.Kind == account.KindFork }); forks.Ns > 0 {
		f.doubt(recording.SourceServer, fmt.Sprintf("%d slow calls waited for the fork itself", forks.Calls),
			float64(forks.Calls), "calls")
	}
	huge := last(n.Host("process.anon_huge_bytes"))
	if huge > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("%.0f MB of it are huge pages: each first write to one of them "+
			"copies 2 MB", huge/1e6), huge, "bytes")
	}
	f.Fix = cowFix(n, huge > 0)
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/#latency-induced-by-transparent-huge-pages", "https://github.com/redis/redis/issues/2844"}
	return f
}

func (c Copies) aloneText(alone float64) string {
	if c.without == 0 {
		return "and there was no time without one"
	}
	return fmt.Sprintf("without one %.0f", alone)
}

func cowFix(n *Node, huge bool) []string {
	var fix []string
	if huge {
		fix = append(fix, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and disable-thp yes in "+
			"redis.conf (6.0 and later): then a copy is of 4 kB")
	}
	if save, ok := n.Config("save"); ok && save != "" {
		fix = append(fix, fmt.Sprintf("Save less often (CONFIG SET save: now %q), at hours with few writes, or on a "+
			"replica: CONFIG SET save \"\" here", save))
	} else {
		fix = append(fix, "Save less often, at hours with few writes, or on a replica; find who asks for BGSAVE "+
			"(cron jobs, backup tools)")
	}
	return append(fix, "Keep what is written close together: many small keys or bits all over a large value touch as "+
		"many pages as they can",
		"repl-diskless-sync yes and a backlog (repl-backlog-size) that spares full resyncs, where replicas are why "+
			"it forks")
}
