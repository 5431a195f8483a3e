package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// CommandsPerSecond is the server's own count of commands per second.
func CommandsPerSecond(n *facts.Node) float64 { return n.PerSecond(series.TotalCommandsProcessed) }

// CommandUse is what one command took of the main thread during the watch.
type CommandUse struct {
	// Name is the command: "CLIENT LIST".
	Name string
	// Calls is the number of its calls.
	Calls float64
	// Usec is the time of all of them in microseconds.
	Usec float64
}

// TopCommand is the command that took most of the main thread's time in all.
func TopCommand(n *facts.Node) (top CommandUse) {
	for _, command := range n.CountedCommands() {
		if usec := n.Growth(series.CommandUsec(command)); usec > top.Usec {
			top = CommandUse{
				strings.ToUpper(strings.ReplaceAll(command, "|", " ")), n.Growth(series.CommandCalls(command)), usec,
			}
		}
	}
	return top
}

// BytesPerCommand is the mean size in bytes of a command with its reply.
func BytesPerCommand(n *facts.Node) float64 {
	bytes := n.Growth(series.TotalNetOutputBytes) + n.Growth(series.TotalNetInputBytes)
	return bytes / max(n.Growth(series.TotalCommandsProcessed), 1)
}

// LongWorkShare is the part of the watch that the event loop spent on commands that are suspects by themselves, and not
// because they are sent often, and on its own jobs: other causes than saturation are named for that.
func LongWorkShare(n *facts.Node) float64 {
	ns := 0.0
	for _, command := range n.CountedCommands() {
		all, calls := n.GrowthNs(series.CommandUsec(command)), n.Growth(series.CommandCalls(command))
		if calls > 0 && all/calls >= float64(account.MinSuspectNs) {
			ns += all
		}
	}
	ms := n.Growth(series.ExpireCycleCPU) + n.Growth(series.TotalEvictionExceededTime) +
		n.Growth(series.TotalActiveDefragTime)
	return (ns/1e9 + ms/1e3) / n.Seconds()
}

// nestedOrWaiting are the commands whose time in commandstats holds that of other commands, which is counted there too,
// or waits for a peer or the disk.
var nestedOrWaiting = map[string]bool{
	"eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true, "fcall": true,
	"fcall_ro": true, "exec": true,
	"migrate": true, "save": true, "debug": true,
}

// CommandsNs is how long all commands that only work lasted during the watch, in nanoseconds of the server's clock.
func CommandsNs(n *facts.Node) (ns int64) {
	for _, command := range n.CountedCommands() {
		if !nestedOrWaiting[command] {
			ns += int64(n.GrowthNs(series.CommandUsec(command)))
		}
	}
	return ns
}

// ProbeWorkNs is the server's own mean time in nanoseconds for a call such as the probe makes.
func ProbeWorkNs(n *facts.Node) int64 {
	usec, calls := 0.0, 0.0
	for _, c := range []string{"ping", "get"} {
		usec += n.Growth(series.CommandUsec(c))
		calls += n.Growth(series.CommandCalls(c))
	}
	if calls == 0 {
		return 0
	}
	return int64(usec / calls * 1000)
}

// TapCalls is how many calls of a command the tap saw, at the end that saw most.
func TapCalls(n *facts.Node, op string) int64 {
	by := TapCallsBy(n, op)
	return max(by[recording.Client], by[recording.Server])
}

// TapCallsBy counts them by the end that saw them; at the client's end slowpath's own are not among them.
func TapCallsBy(n *facts.Node, op string) map[string]int64 {
	by := map[string]int64{}
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		side, of, ok := strings.Cut(h.Op, " ")
		if ok && of == op && (h.Node == n.Address || h.Node == "") {
			by[side] += h.Sum.TotalCount()
		}
	}
	return by
}
