package report

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// meaningOf puts the states of an account into plain words (docs/recording.md has the states).
var meaningOf = map[string]string{
	"app pool-wait":         "waiting for a free connection",
	"app lock-wait":         "waiting for a lock in the program",
	"app dial":              "opening a connection",
	"app tls":               "TLS handshake",
	"app handshake":         "HELLO, AUTH and SELECT on a new connection",
	"app redirect":          "sent on to another node (MOVED, ASK)",
	"client send":           "writing the request to the socket",
	"client waits for CPU":  "in the run queue: others had its CPU",
	"client throttled":      "its cgroup's CPU quota was used up",
	"client asleep":         "it did not wait for the server",
	"client waits for loop": "the thread that sends and reads for it was elsewhere",
	"client receive":        "reading the reply",
	"network out":           "request on its way",
	"network back":          "reply on its way",
	"network way":           "request or reply on its way, not known which",
	"network retransmit":    "a packet was lost and retransmitted",
	"network delayed-ack":   "waiting for a delayed ACK",
	"proxy queue":           "waiting inside the proxy",
	"proxy forward":         "it had read the call, and its thread slept",
	"proxy waits for CPU":   "in the run queue: others had its CPU",
	"proxy throttled":       "its cgroup's CPU quota was used up",
	"proxy frozen":          "stopped by a signal or the freezer",
	"proxy busy":            "passing on other calls first",
	"proxy blocked":         "asleep in the kernel: disk, memory, fork or log",
	"proxy exec":            "passing on the call itself",
	"proxy withheld":        "it had read the call, and slept",
	"proxy send":            "writing a request or a reply to the socket",
	"proxy receive":         "reading a reply",
	"proxy asleep":          "asleep while a reply was there to be read",
	"server waits for CPU":  "in the run queue: others had its CPU",
	"server throttled":      "its cgroup's CPU quota was used up",
	"server frozen":         "stopped by a signal or the freezer",
	"server busy":           "serving other commands first",
	"server blocked":        "asleep in the kernel: disk, memory, fork or log",
	"server exec":           "running the command itself",
	"server withheld":       "it had read the call, and slept",
	"server waits for acks": "WAIT: replicas or the disk have yet to confirm writes",
	"server send":           "sending the reply, as fast as the client and the path take it",
	"server unexplained":    "it had the request; why it did not answer was not seen",
	"calls not slow":        "longer than they need: queues, distance, one after the other",
	"opening connections":   "DNS, dial, TLS, handshake, PING",
	"waiting to send":       "waiting in the client for a connection or a retry",
	"no reply":              "waiting for a reply that never came",
	"waiting for acks":      "WAIT: replicas or the disk have yet to confirm writes",
	unexplained:             "no source saw what happened here",
}

const unexplained = "unexplained"

// StateName is a state of an actor in plain words: "server busy", "client waits for CPU".
func StateName(actor, state string) string { return stateName(actor, state) }

// stateName is the name of a state: "server throttled". Nobody is the actor of unexplained time, unless it is known
// that it passed at the server.
func stateName(actor, state string) string {
	if actor == verdict.Elsewhere && elsewhereNames[facts.LossKind(state)] != "" {
		return elsewhereNames[facts.LossKind(state)]
	}
	if state == unexplained && actor != recording.Server || actor == "" {
		return state
	}
	if plain, ok := plainState[state]; ok {
		state = plain
	}
	return actor + " " + state
}

// plainState are states whose names say little to who does not know them, in words.
var plainState = map[string]string{
	"run-queue": "waits for CPU", "off-cpu": "asleep", "loop-wait": "waits for loop",
	"lock-wait": "waits for lock",
	"ack-wait":  "waits for acks",
}

// actorPaint is the colour of an actor in a bar.
func actorPaint(actor string) layout.Paint {
	switch actor {
	case "server":
		return layout.Red
	case "network", "proxy":
		return layout.Yellow
	case "client":
		return layout.Blue
	case "app":
		return layout.Purple
	}
	return layout.Dim
}
