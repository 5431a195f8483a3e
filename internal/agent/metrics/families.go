package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// family is all series of one name.
type family struct {
	name, kind, help string
	labels           []string
	desc             *prometheus.Desc
}

// Kinds of families.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

var families []*family // in the order of docs/metrics.md

func define(name, kind, help string, labels ...string) *family {
	f := &family{name, kind, help, labels, prometheus.NewDesc(name, help, labels, nil)}
	families = append(families, f)
	return f
}

// All metrics of slowpath. Those of the process (process_…) are of the library.
var (
	callDuration = define("slowpath_call_duration_seconds", histogram,
		"Time of calls, from when they were due to their reply, by node and by whose calls they are.",
		"node", "whose")
	calls = define("slowpath_calls_total", counter,
		"Calls with a reply, by node and by whose calls they are.", "node", "whose")
	slowCalls = define("slowpath_slow_calls_total", counter,
		"Calls that took the slow threshold or longer.", "node", "whose")
	failedCalls = define("slowpath_failed_calls_total", counter,
		"Calls with an error reply that is no redirect, or without a reply.", "node", "whose")
	seenAtServer = define("slowpath_node_seen_at_server", gauge,
		"1 where calls of users to the node are seen at the server's end, which sees all clients; 0: at the "+
			"clients' end, which sees the clients of this host.", "node")
	slowThreshold = define("slowpath_slow_threshold_seconds", gauge, "From when on a call is slow at the moment.")

	waited = define("slowpath_slow_call_waited_seconds_total", counter,
		"Time of slow calls by where it passed: an actor in a state.", "whose", "actor", "state")
	withoutParts = define("slowpath_slow_calls_without_parts_total", counter,
		"Slow calls that came faster than they were read: they are counted, and where their time passed is not.")

	commandCalls = define("slowpath_command_calls_total", counter, "Calls of users, by command.", "command")
	commandTime  = define("slowpath_command_seconds_total", counter,
		"Time of all calls of users together, by command.", "command")
	commandSlow = define("slowpath_command_slow_calls_total", counter, "Slow calls of users, by command.", "command")

	callerCalls = define("slowpath_caller_calls_total", counter,
		"Calls of users, by the process of this host or the other host that made them.", "caller")
	callerSlow = define("slowpath_caller_slow_calls_total", counter, "Slow calls of users, by caller.", "caller")
	callerTime = define("slowpath_caller_slow_call_seconds_total", counter,
		"Time of slow calls of users together, by caller.", "caller")
	folded = define("slowpath_folded_names", gauge,
		"How many values of a label have no series of their own now and count as \"other\", at least.", "label")

	incidentCount = define("slowpath_incidents_total", counter,
		"Incidents that were judged since the agent began, by their first cause and verdict.", "cause", "verdict")
	incidentActive = define("slowpath_incident_active", gauge,
		"Incidents that are watched or judged at the moment.")

	watching = define("slowpath_watching", gauge, "1 while at least one source watches.")
	sourceUp = define("slowpath_source_up", gauge, "1 if a source takes part in the watch.", "source")
	blind    = define("slowpath_blind_spots", gauge, "How many things cannot be seen; the page says which and why.")
	unseen   = define("slowpath_unseen_ratio", gauge,
		"The part of a thing that was missed since the watch began, 0 to 1. counted=\"true\": a detail is missing, "+
			"the calls are counted.", "what", "counted")
	countedUpTo = define("slowpath_counted_up_to_timestamp_seconds", gauge,
		"All calls that ended before this time are counted.")

	ownServerTime = define("slowpath_own_server_seconds_total", counter,
		"Time that the server spent on slowpath's own commands.", "node")
	hookCores = define("slowpath_kernel_hooks_cores", gauge,
		"CPU time of slowpath's kernel programs per time: 0.01 is 1 % of a core.")
	hookRun = define("slowpath_kernel_hook_run_seconds", gauge,
		"Mean time of one run of slowpath's kernel programs, as the kernel measured it in the first second.")
	overBudget = define("slowpath_over_budget", gauge,
		"1 while the agent leaves out a part of its work to keep its budget, or does not keep it.")
	cpuUsed = define("slowpath_cpu_cores", gauge,
		"CPU time of the agent's processes per time, over the last minute, without its kernel programs and "+
			"judgements: 0.01 is 1 % of a core.")
	memoryUsed = define("slowpath_memory_bytes", gauge, "Resident memory of the agent's processes.")
	cpuBudget  = define("slowpath_cpu_budget_cores", gauge,
		"CPU time that the agent may use per time, without its kernel programs: 0.01 is 1 % of a core.")
	memoryBudget = define("slowpath_memory_budget_bytes", gauge, "Memory that the agent may use.")

	sent = define("slowpath_sent_total", counter,
		"What was sent elsewhere, by channel: pushes of metrics, spans, notifications, incidents.", "channel")
	sendFailed  = define("slowpath_send_failed_total", counter, "What could not be sent.", "channel")
	sendDropped = define("slowpath_send_dropped_total", counter,
		"What was not sent, because a bound was reached.", "channel")
	sentBytes = define("slowpath_sent_bytes_total", counter, "Bytes that were sent, as on the wire.", "channel")
	queued    = define("slowpath_send_queued", gauge, "What waits to be sent.", "channel")

	build = define("slowpath_build_info", gauge, "1, with the version of slowpath.", "version")
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f.desc
	}
}
