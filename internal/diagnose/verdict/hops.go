package verdict

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/recording"
)

// Hop is a node on the way of calls through proxies, the first that callers reach first.
type Hop struct {
	Node    string `json:"node"`
	Kind    string `json:"kind"`              // proxy or server
	Process string `json:"process,omitempty"` // the name of its process, where it runs on this host
	// Source is where the times of all calls are from: tap, at the hop's end of its connections, or probe: slowpath's
	// own GETs.
	Source string `json:"source"`
	Calls  int    `json:"calls"`
	// Nanoseconds from the hop on, and how much more that is than from the next hop on.
	P50Ns      int64 `json:"p50_ns"`
	P99Ns      int64 `json:"p99_ns"`
	AddedP50Ns int64 `json:"added_p50_ns"`
	AddedP99Ns int64 `json:"added_p99_ns"`
	// LostNs is the time that slow calls lost at the hop and on the way to it; Share its share of that of all hops.
	LostNs int64   `json:"lost_ns"`
	Share  float64 `json:"share"`
	// Actor and State are those of most of LostNs, as in account; Culprit is what the hop did then, where it is known.
	Actor   string `json:"actor,omitempty"`
	State   string `json:"state,omitempty"`
	Culprit string `json:"culprit,omitempty"`
	// Summary is what the hop did, in one sentence; only of one that adds most of the lost time.
	Summary string `json:"summary,omitempty"`
}

// hopsOf are the hops of a case; none where there is no proxy among its nodes.
func hopsOf(c *facts.Case) []Hop {
	times := nodes.Hops(c)
	lost := 0.0
	for _, t := range times {
		lost += t.LostNs
	}
	var out []Hop
	for i, t := range times {
		h := Hop{
			Node: t.Node, Kind: "server", Process: t.Process, Source: t.Source, Calls: t.Calls, P50Ns: t.P50Ns,
			P99Ns: t.P99Ns, AddedP50Ns: t.AddedP50Ns, AddedP99Ns: t.AddedP99Ns, LostNs: int64(t.LostNs + 0.5),
			Share: t.LostNs / max(lost, 1), Actor: t.Actor, State: t.State, Culprit: t.Culprit,
		}
		if t.Proxy {
			h.Kind = "proxy"
		}
		if lost > 0 && h.Share > degree.Most {
			name := h.name()
			if h.Process == "" {
				name = "T" + name[1:] // "the proxy at …"
			}
			h.Summary = fmt.Sprintf("%s, hop %d of %d, adds %.0f %% of the time that slow calls lost: %s.", name,
				i+1, len(times), h.Share*100, h.did())
		}
		out = append(out, h)
	}
	return out
}

func (h Hop) name() string {
	if h.Process != "" {
		return h.Process + " at " + h.Node
	}
	return "the " + h.Kind + " at " + h.Node
}

// did says what a hop did in most of the time that was lost there.
func (h Hop) did() string {
	what := map[string]string{
		recording.Frozen:    "its process was stopped",
		account.Throttled:   "its CPU quota was used up",
		account.RunQueue:    "its process waited for a CPU",
		account.Busy:        "it served other calls first",
		account.Exec:        "it worked on these calls",
		account.Blocked:     "it slept in the kernel: disk, memory, fork or log",
		account.Withheld:    "it had read the calls, and slept",
		account.AckWait:     "replicas or the disk had not confirmed writes yet",
		account.Send:        "its replies went out as fast as they were taken",
		recording.Forward:   "it had read the calls, and did not answer; the calls that it made meanwhile were fast",
		account.Receive:     "it read replies late",
		account.OffCPU:      "it slept while replies were there to be read",
		account.Out:         "requests took long to get there",
		account.Back:        "replies took long from there",
		account.Retransmit:  "packets were lost on the way to it",
		account.Unexplained: "what it did was not seen",
	}[h.State]
	switch {
	case what == "":
		return h.Actor + " " + h.State
	case h.State == account.Busy && h.Culprit != "":
		return what + " (" + h.Culprit + ")"
	}
	return what
}
