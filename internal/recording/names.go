package recording

import (
	"strings"

	"slowpath/internal/recording/series"
)

// Values of the column source.
const (
	SourceProbe  = "probe"
	SourceServer = series.SourceServer
	SourceHost   = series.SourceHost
	SourceTap    = series.SourceTap
	SourceLoad   = "load"
	// SourceProfile reads profiles of applications: what their goroutines and threads wait for.
	SourceProfile = "profile"
	// SourceCapture reads packets from a file. What it sees of calls and connections are rows of SourceTap: the tap
	// sees the same from the same end, and more.
	SourceCapture = "capture"
	// SourceText reads what servers said of themselves from texts that somebody pasted. What it finds are rows of
	// SourceServer.
	SourceText = "text"
	// SourceWatch is the watch itself: what somebody tells the agent, and targets that cannot be watched.
	SourceWatch = "watch"
	// SourceRecording is the recording itself: rows that it could not take, or keep. All sources rest on them.
	SourceRecording = "recording"
)

// beforePrefix is that of the sources of rows which were written in the time before that of the recording.
const beforePrefix = "before:"

// Before is the source of what a source wrote in the time before that of the recording. See Recording.Earlier.
func Before(source string) string { return beforePrefix + source }

// Names of the source load: the connection of all of its calls, which have one baseline; the two prefixes of the op of
// its histograms; and the error of a call that had no reply when the load ended.
const (
	ConnLoad         = "load"
	LoadFromIntended = "intended"
	LoadFromSend     = "sent"
	LoadUnanswered   = "unanswered"
)

// Subjects that are not the address of a node. A sample or event about a server (its INFO, its process, its main
// thread) has that node's address as subject, whichever source it comes from.
const (
	SubjectMachine = series.SubjectMachine // this host as a whole: PSI, steal, memory
	SubjectSelf    = series.SubjectSelf    // slowpath itself: its own cost
	// CgroupPrefix + path is a CPU or memory cgroup of a watched process, e.g. "cgroup:/kubepods/pod1/redis".
	CgroupPrefix = series.CgroupPrefix
	// ProcessPrefix + pid is a process on this host that is not the server: a client or a neighbour.
	ProcessPrefix = series.ProcessPrefix
	// ConnPrefix + address of the client's end is a connection that the tap watches from that end.
	ConnPrefix = series.ConnPrefix
	// HostPrefix + address is another host that calls.
	HostPrefix = "host:"
	// PprofPrefix + host:port is an application that was profiled at that address of net/http/pprof.
	PprofPrefix = "pprof:"
)

// Values of the column kind of profile.
const (
	ProfileGoroutine = "goroutine" // Go: the stack of each goroutine, at one time
	ProfileMutex     = "mutex"     // Go: delays at locks during the watch, by holder
	ProfileBlock     = "block"     // Go: delays at locks, channels and conditions during the watch, by waiter
	ProfileCPU       = "cpu"       // Go: CPU time in a part of the watch
	ProfileThreads   = "threads"   // JVM: the stack of each thread, at one time
	ProfileCPUClock  = "cpu-clock" // any process: samples of its threads on the CPU, by the kernel, with their times
	ProfilePython    = "python"    // Python: samples of its threads, running or not, with their times
	ProfileRuby      = "ruby"      // Ruby: the same
)

// SampledOnHost reports whether profiles of a kind are samples of a process, with their times, by its host.
func SampledOnHost(kind string) bool {
	return kind == ProfileCPUClock || kind == ProfilePython || kind == ProfileRuby
}

// ErrorRepliesPrefix begins the names of the samples of the tap that count error replies; then come the end of the
// connection that counted, the command, and the first word of the error: "error_replies.server.CLIENT LIST.NOPERM".
const ErrorRepliesPrefix = "error_replies."

// CallsFromPrefix begins the names of the samples of the tap that count the calls that came from other hosts, where
// only the server's end is seen; then comes the host's address, or CallsFromOthers for those beyond a number of hosts:
// "calls_from.10.0.0.7".
const (
	CallsFromPrefix = "calls_from."
	CallsFromOthers = "other"
)

// ErrorRepliesName is the name of such a sample.
func ErrorRepliesName(side, op, code string) string {
	return ErrorRepliesPrefix + side + "." + op + "." + code
}

// ParseErrorReplies is its reverse. A command may hold a dot, a side and a code do not.
func ParseErrorReplies(name string) (side, op, code string, ok bool) {
	rest, ok := strings.CutPrefix(name, ErrorRepliesPrefix)
	side, rest, sided := strings.Cut(rest, ".")
	last := strings.LastIndexByte(rest, '.')
	if !ok || !sided || last < 0 {
		return "", "", "", false
	}
	return side, rest[:last], rest[last+1:], true
}
