package benchmark

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// section is what a native command printed: the text from its prompt to the next one.
func section(text, command string) string {
	_, rest, found := strings.Cut("\n"+text, "> "+command+"\n")
	if !found {
		return ""
	}
	if at := nextPrompt.FindStringIndex(rest); at != nil {
		rest = rest[:at[0]]
	}
	return rest
}

// nextPrompt is a line that begins with an address and a command.
var nextPrompt = regexp.MustCompile(`(?m)^\S+:\d+> [A-Z]`)

// spikes is a line of LATENCY DOCTOR: "1. command: 5 latency spikes (average 12ms, mean deviation 2ms, ...".
var spikes = regexp.MustCompile(`(?m)^\d+\. ([a-z-]+): (\d+) latency spikes \(average (\d+)ms`)

// eventCauses are which cause an event of the latency monitor stands for.
var eventCauses = map[string]string{
	"command": "slow-command", "fast-command": "slow-command", "fork": "fork-latency",
	"aof-fsync-always": "aof-fsync-always", "aof-write": "aof-everysec-stall", "aof-write-alone": "aof-everysec-stall",
	"aof-write-pending-fsync": "aof-everysec-stall", "aof-write-active-child": "aof-everysec-stall",
	"aof-stat": "aof-everysec-stall", "aof-fstat": "aof-everysec-stall", "expire-cycle": "active-expire-cycle",
	"eviction-cycle": "eviction-cycle", "eviction-del": "eviction-cycle", "active-defrag-cycle": "active-defrag",
	"while-blocked-cron": "event-loop-blocked",
}

// LatencyDoctor is what a reader of LATENCY DOCTOR says: each event is a cause, by how long its spikes were together.
func LatencyDoctor(text string) Answer {
	ms := map[string]float64{}
	for _, m := range spikes.FindAllStringSubmatch(section(text, "LATENCY DOCTOR"), -1) {
		if id := eventCauses[m[1]]; id != "" {
			ms[id] += float(m[2]) * float(m[3])
		}
	}
	return byTime(ms)
}

// entry is the duration, in µs, and the command of an entry of SLOWLOG as redis-cli prints it.
var entry = regexp.MustCompile(`(?m)^ *\d+\) 1\) \(integer\) \d+\n +2\) \(integer\) \d+\n +3\) \(integer\) (\d+)\n` +
	` +4\) 1\) "([^"]*)"`)

// commandCauses are which cause a slow command stands for; others are slow commands.
var commandCauses = map[string]string{
	"EVAL": "lua-or-multi-long", "EVALSHA": "lua-or-multi-long", "FCALL": "lua-or-multi-long",
	"EXEC": "lua-or-multi-long", "FLUSHALL": "flush-sync", "FLUSHDB": "flush-sync", "DEL": "sync-free-of-big-key",
	"MIGRATE": "migrate-big-key-blocks", "RESTORE": "migrate-big-key-blocks", "CLUSTER": "topology-refresh-storm",
	"INFO": "introspection-load", "CLIENT": "introspection-load", "CONFIG": "introspection-load",
}

// Slowlog is what a reader of SLOWLOG says: each kind of command is a cause, by how long its entries took together.
func Slowlog(text string) Answer {
	us := map[string]float64{}
	for _, m := range entry.FindAllStringSubmatch(section(text, "SLOWLOG GET 128"), -1) {
		us[cmp.Or(commandCauses[strings.ToUpper(m[2])], "slow-command")] += float(m[1])
	}
	return byTime(us)
}

func float(digits string) float64 {
	v, _ := strconv.ParseFloat(digits, 64)
	return v
}

// byTime names causes by their time, the longest first. Without any the server is healthy.
func byTime(times map[string]float64) Answer {
	a, all := Answer{Healthy: len(times) == 0, Causes: []AnswerCause{}}, 0.0
	for id, t := range times {
		a.Causes = append(a.Causes, AnswerCause{Cause: id, Share: t})
		all += t
	}
	for i := range a.Causes {
		a.Causes[i].Share /= all
	}
	slices.SortFunc(a.Causes, func(a, b AnswerCause) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Cause, b.Cause))
	})
	return a
}
