package hosts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
	"slowpath/internal/stats"
)

// CodeSample is where a thread of a caller was in its program at one time.
type CodeSample struct {
	TimeNs, TID int64
	// HoldsLock: no other thread of it could run meanwhile (an interpreter's lock).
	HoldsLock bool
	// Waits: its program is sampled while it waits, too; others only while they run.
	Waits bool
	// Awaits: an event loop that waits for events.
	Awaits bool
	frames []codeFrame // the outermost first
}

// codeFrame is a function in a stack.
type codeFrame struct {
	name string // with the line, where it is known
	own  bool   // of the application, and not of a library
}

// Code is where threads of a caller were most of some time.
type Code struct {
	Function string // the innermost of the application that they were in, or in what it calls: "fetch (app.py:42)",
	Library  string // and what that calls in a library: "urlopen [urllib/request.py:216]"; empty where that differs
	In       int    // samples there,
	Samples  int    // of so many
}

// Text is both functions.
func (c Code) Text() string {
	if c.Library == "" {
		return c.Function
	}
	return c.Function + ", in " + c.Library
}

// FewSamples of a CPU are too few for a share.
const FewSamples = degree.Many

// Mostly reports whether a thread did something in so many of its samples that it is the reason why it was busy, beyond
// chance.
func Mostly(samples, of int) bool {
	low, _ := stats.Proportion(samples, of)
	return of >= FewSamples && low > degree.Most
}

// CodeIn is where threads of a process were most of the samples in stretches of time, of those samples that of takes;
// false where these are few, or no function of the application is, beyond chance, in more than half of them.
func CodeIn(n *facts.Node, pid int, spans facts.Spans, of func(CodeSample) bool) (c Code, ok bool) {
	spans = facts.MergeSpans(spans)
	var in []CodeSample
	for _, s := range facts.Once(n, "samples of code", readCodeSamples)[pid] {
		if spans.Has(s.TimeNs) && of(s) {
			in = append(in, s)
		}
	}
	if c.Samples = len(in); c.Samples < FewSamples {
		return c, false
	}
	for depth := 0; ; depth++ { // from caller to callee, while most are in the same one
		places, shown := facts.NameCounts{}, facts.NameCounts{}
		for _, s := range in {
			if depth < len(s.frames) {
				places[withoutLine(s.frames[depth].name)]++
			}
		}
		top := places.Top(1)
		if len(top) == 0 {
			break
		}
		if !Mostly(places[top[0]], c.Samples) {
			break
		}
		in = slices.DeleteFunc(in, func(s CodeSample) bool {
			return depth >= len(s.frames) || withoutLine(s.frames[depth].name) != top[0]
		})
		for _, s := range in {
			shown[s.frames[depth].name]++
		}
		switch frame := shown.Top(1)[0]; {
		case in[0].frames[depth].own:
			c.Function, c.Library, c.In = frame, "", len(in)
		case c.Library == "":
			c.Library = frame
		}
	}
	return c, c.Function != ""
}

// LockHeld is in which share of the samples of a process a thread held its interpreter's lock, and where those threads
// were; false where the samples are few.
func LockHeld(n *facts.Node, pid int) (share float64, code Code, ok bool) {
	all, held := map[int64]bool{}, map[int64]bool{}
	for _, s := range facts.Once(n, "samples of code", readCodeSamples)[pid] {
		all[s.TimeNs] = true
		if s.HoldsLock {
			held[s.TimeNs] = true
		}
	}
	code, _ = CodeIn(n, pid, facts.Spans{{FromNs: n.StartNs, ToNs: n.EndNs}},
		func(s CodeSample) bool { return s.HoldsLock })
	return float64(len(held)) / float64(max(len(all), 1)), code, len(all) >= FewSamples
}

// HolderCode is where threads of a process were while others of it slept until they woke them: it had what those waited
// for, a lock or a connection. A thread that slept so itself had not. False where that is not known.
func HolderCode(n *facts.Node, pid int) (Code, bool) {
	holds, waits := map[int64]facts.Spans{}, map[int64]facts.Spans{}
	var all facts.Spans
	for _, e := range n.Rec.EventsOf(recording.SourceTap, processSubject(pid), recording.KindLockWait) {
		d := recording.DetailOf[recording.ThreadDetail](e)
		if s := (facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs}); d.By != nil {
			all = append(all, s)
			holds[int64(d.By.TID)] = append(holds[int64(d.By.TID)], s)
			waits[int64(d.TID)] = append(waits[int64(d.TID)], s)
		}
	}
	for _, of := range []map[int64]facts.Spans{holds, waits} {
		for tid := range of {
			of[tid] = facts.MergeSpans(of[tid])
		}
	}
	return CodeIn(n, pid, all, func(s CodeSample) bool {
		return s.Waits && holds[s.TID].Has(s.TimeNs) && !waits[s.TID].Has(s.TimeNs)
	})
}

// LoopTIDs are the threads of a process that wait for whatever comes first, as event loops do.
func LoopTIDs(n *facts.Node, pid int) []int {
	s, _ := n.Rec.SnapshotOf(recording.SourceTap, processSubject(pid), recording.SnapshotWaits)
	return recording.ThreadWaitsOf(s.Body).LoopTIDs
}

// readCodeSamples reads the samples of callers, by process.
func readCodeSamples(n *facts.Node) map[int][]CodeSample {
	out, table := map[int][]CodeSample{}, stacks.Caller()
	known := map[string][]codeFrame{} // by the stack: few of many are different
	for _, body := range n.Rec.Profiles {
		text, is := strings.CutPrefix(body.Subject, recording.ProcessPrefix)
		pid, err := strconv.Atoi(text)
		if !recording.SampledOnHost(body.Kind) || !is || err != nil {
			continue
		}
		s, _ := n.Rec.SnapshotOf(recording.SourceProfile, body.Subject, recording.SnapshotApplication)
		what, _ := recording.BodyOf[recording.Profiled](s)
		if what.Node != "" {
			continue // a server
		}
		p, err := stacks.Read(body.Pprof)
		if err != nil {
			continue // the profile was cut short
		}
		holds := p.Column("holds_lock")
		for _, s := range p.Stacks {
			frames := s.Frames[min(1, len(s.Frames)):] // the first is the thread
			c := CodeSample{TimeNs: s.TimeNs, TID: s.TID, HoldsLock: holds >= 0 && s.Values[holds] > 0}
			c.Waits = isInterpreted(body.Kind)
			stack := strings.Join(frames, "\n")
			if c.frames = known[stack]; c.frames == nil {
				switch {
				case isInterpreted(body.Kind):
					c.frames = interpretedFrames(frames)
				case what.Runtime == "jvm":
					c.frames = javaFrames(frames)
				default:
					c.frames = nativeFrames(table, frames)
				}
				known[stack] = c.frames
			}
			c.Awaits = c.awaits(body.Kind)
			out[pid] = append(out[pid], c)
		}
	}
	return out
}

// awaits: a loop of Python waits in selectors.py. Those of Ruby (Puma's reactor, Async's scheduler) wait in some
// library, without the lock.
func (s CodeSample) awaits(kind string) bool {
	if len(s.frames) == 0 {
		return false
	}
	switch last := s.frames[len(s.frames)-1]; kind {
	case recording.ProfilePython:
		return strings.Contains(last.name, " [selectors.py")
	case recording.ProfileRuby:
		return !last.own && !s.HoldsLock
	}
	return false
}

// interpretedFrames: those of libraries end in "]".
func interpretedFrames(frames []string) (out []codeFrame) {
	for _, f := range frames {
		out = append(out, codeFrame{f, !strings.HasSuffix(f, "]")})
	}
	return out
}

// nativeFrames are functions with symbols. Where the table knows what they mean, that is what the program did.
func nativeFrames(table stacks.Table, frames []string) (out []codeFrame) {
	if m, known := table.Of(frames); known {
		return []codeFrame{{m.What, true}}
	}
	for _, f := range frames {
		if strings.HasSuffix(f, "_[k]") {
			break
		}
		out = append(out, codeFrame{f, !skeletonOfCallers[f] && !strings.HasPrefix(f, "[") && f != "?" && f != "" &&
			!slices.ContainsFunc(runtimes, func(r string) bool { return strings.HasPrefix(f, r) })})
	}
	return out
}

// javaMethod is a method as HotSpot names it in the map of its compiler: "long shop.Price.total(java.lang.String)". A
// class that it made itself has a number: "shop.Price$$Lambda$14/0x00007f2b0c000a00".
var javaMethod = regexp.MustCompile(`^\S+ ([\w.$]+?)(?:\$\$Lambda(?:\$\d+)?)?(?:[/.]0x[0-9a-f]+)?\.([\w$<>]+)\(.*\)$`)

// javaLibraries are the beginnings of packages that are not an application's own.
var javaLibraries = []string{
	"java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "io.netty.", "io.lettuce.",
	"redis.clients.", "org.redisson.", "reactor.", "org.springframework.", "org.apache.", "com.fasterxml.",
	"com.google.", "org.slf4j.", "ch.qos.", "io.micrometer.", "org.hibernate.", "com.zaxxer.",
}

// javaFrames are the methods in a stack. What else a JVM runs has other names, and is left out.
func javaFrames(frames []string) (out []codeFrame) {
	for _, f := range frames {
		m := javaMethod.FindStringSubmatch(f)
		if m == nil {
			continue
		}
		library := slices.ContainsFunc(javaLibraries, func(l string) bool { return strings.HasPrefix(m[1], l) })
		out = append(out, codeFrame{m[1] + "." + m[2], !library})
	}
	return out
}

// Functions that are around whatever a program does, and how those of runtimes begin.
var (
	skeletonOfCallers = facts.WordSet("_start __libc_start_main __libc_start_main_impl __libc_start_call_main main " +
		"clone __clone3 clone3 start_thread uv_run uv__io_poll event_base_loop ev_run")
	runtimes = []string{"runtime.", "node::", "v8::", "Builtins_"}
)

// withoutLine is a function without the line at its end.
func withoutLine(frame string) string {
	i := strings.LastIndexByte(frame, ':')
	if i < 0 || strings.Trim(frame[i+1:], "0123456789)]") != "" {
		return frame
	}
	return frame[:i]
}
