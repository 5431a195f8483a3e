package server

import (
	"cmp"
	"errors"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// OwnCounters are the blind spot of a node without INFO.
const OwnCounters = "the server's own counters (INFO): load, memory, forks, time per command"

// spots are the blind spots that the refusal of a command makes.
var spots = map[string]string{
	"INFO":          OwnCounters,
	"SLOWLOG GET":   "slow commands by name (SLOWLOG)",
	"LATENCY":       "stalls that the server noticed itself (LATENCY)",
	"CLIENT LIST":   "who the server's clients are (CLIENT LIST)",
	"CONFIG GET":    "the server's settings (CONFIG GET)",
	"CLUSTER INFO":  "the health of the cluster (CLUSTER INFO)",
	"CLUSTER NODES": "the topology of the cluster (CLUSTER NODES)",
	"SLOWLOG lost":  "some of the slow commands (SLOWLOG)",

	"COMMANDLOG GET":     "large requests and replies by command (COMMANDLOG)",
	"CLUSTER SLOT-STATS": "which slots of the cluster take the server's time (CLUSTER SLOT-STATS)",
}

// newer are the blind spots of commands that only newer servers have: that a server does not know one hides nothing.
var newer = map[string]bool{"COMMANDLOG GET": true, "CLUSTER SLOT-STATS": true}

// refusals remembers the commands that the server refuses, so that each is tried once and reported once.
type refusals struct {
	emit    func(recording.BlindSpot)
	grant   func(rules string) string // the command that gives our user rights
	refused map[string]bool
}

// allows reports whether a command was not refused so far.
func (r *refusals) allows(spot string) bool { return !r.refused[spot] }

// check reports an error reply as a blind spot, unless it is for a state that ends, such as LOADING.
func (r *refusals) check(spot string, err error) {
	var reply *resp.ServerError
	if !errors.As(err, &reply) || isTemporary(reply.Code) || r.refused[spot] {
		return
	}
	r.refused[spot] = true
	if newer[spot] && reply.Code != "NOPERM" {
		return
	}
	r.emit(recording.BlindSpot{
		What: spots[spot], Why: "the server refused it: " + clip(reply.Error()),
		Enable: r.enable(spot, reply),
	})
}

// skip reports that slowpath itself does not send a command.
func (r *refusals) skip(spot, why, enable string) {
	r.reportOnce(spot, recording.BlindSpot{What: spots[spot], Why: why, Enable: enable})
}

// reportOnce records a blind spot the first time, and its command, if it is one, is not sent again.
func (r *refusals) reportOnce(spot string, b recording.BlindSpot) {
	if !r.refused[spot] {
		r.refused[spot] = true
		r.emit(b)
	}
}

func isTemporary(code string) bool {
	switch code {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM", "NOAUTH":
		return true
	}
	return false
}

// rules are the rights that a spot needs, where they are not its own name. CLIENT LIST is not tried without INFO, which
// says how long it would take.
var rules = map[string]string{
	"INFO": "+info +client|list", "LATENCY": "+latency|latest +latency|history",
}

func (r *refusals) enable(spot string, reply *resp.ServerError) string {
	if reply.Code == "NOPERM" {
		return r.grant(cmp.Or(rules[spot], "+"+strings.ReplaceAll(strings.ToLower(spot), " ", "|")))
	}
	return "ask a user or an address that may use " + spot + "; it is renamed, disabled, or not offered by this " +
		"service or proxy"
}
