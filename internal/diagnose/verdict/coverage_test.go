package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
)

// lookAlike has for each cause an incident of another one that shows some of the same from afar. The cause must be
// named in the recording of its own incident, and not in that of the other.
var lookAlike = map[string]string{
	"accept-backlog-overflow":             "maxclients",
	"active-expire-cycle":                 "eviction-cycle",
	"aof-everysec-stall":                  "aof-fsync-always",
	"aof-fsync-always":                    "aof-everysec-stall",
	"ask-redirect-during-migration":       "moved-refresh-storm",
	"big-key-io":                          "slow-command",
	"blocking-cmd-on-shared-conn":         "multiplex-hol-big-reply",
	"calls-refused":                       "replica-loading-or-readonly-routing",
	"codis-slot-migration-stall":          "migrate-big-key-blocks",
	"client-cfs-throttled":                "client-cpu-saturated",
	"client-cpu-saturated":                "client-gc-pause",
	"client-eventloop-blocked":            "client-gc-pause",
	"client-gc-pause":                     "client-eventloop-blocked",
	"client-pause-or-write-block":         "process-frozen",
	"cmdinfo-once-lock":                   "introspection-load",
	"cow-faults-after-fork":               "fork-latency",
	"dial-herd-or-serialised-dial":        "reconnect-herd",
	"dns-slow":                            "handshake-extra-rtts",
	"eviction-cycle":                      "active-expire-cycle",
	"failover-window":                     "process-frozen",
	"fanout-slowest-shard":                "hot-shard-or-hot-key",
	"flush-sync":                          "sync-free-of-big-key",
	"fork-latency":                        "cow-faults-after-fork",
	"framework-hidden-keys":               "slow-command",
	"gomaxprocs-over-quota":               "client-cfs-throttled",
	"handshake-extra-rtts":                "rtt-floor",
	"hidden-retries-backoff":              "packet-loss-rto",
	"hot-shard-or-hot-key":                "fanout-slowest-shard",
	"idle-conn-blackholed":                "stale-conn-server-timeout",
	"inline-rediscovery":                  "topology-refresh-storm",
	"introspection-load":                  "slow-command",
	"io-threads-oversubscribed":           "main-thread-saturated",
	"lua-or-multi-long":                   "slow-command",
	"main-thread-saturated":               "server-cfs-throttled",
	"many-clients-overhead":               "introspection-load",
	"maxclients":                          "accept-backlog-overflow",
	"migrate-big-key-blocks":              "big-key-io",
	"moved-refresh-storm":                 "topology-refresh-storm",
	"multiplex-hol-big-reply":             "blocking-cmd-on-shared-conn",
	"n-plus-one-roundtrips":               "rtt-floor",
	"nagle-delayed-ack":                   "rtt-floor",
	"no-socket-timeout":                   "idle-conn-blackholed",
	"oversized-pipeline-or-multikey":      "slow-command",
	"packet-loss-rto":                     "nagle-delayed-ack",
	"pool-exhausted-wait":                 "pool-oversized",
	"pool-idle-reap-redial":               "pool-maxidle-churn",
	"pool-leak":                           "pool-maxidle-churn",
	"pool-maxidle-churn":                  "pool-idle-reap-redial",
	"pool-oversized":                      "pool-exhausted-wait",
	"pool-test-on-borrow":                 "n-plus-one-roundtrips",
	"process-frozen":                      "server-cfs-throttled",
	"receiver-stall":                      "packet-loss-rto",
	"reconnect-herd":                      "dial-herd-or-serialised-dial",
	"replica-loading-or-readonly-routing": "failover-window",
	"proxy-cpu-bound":                     "main-thread-saturated",
	"lb-hop":                              "rtt-floor",
	"rtt-floor":                           "nagle-delayed-ack",
	"server-cfs-throttled":                "server-cpu-contention",
	"server-cpu-contention":               "server-cfs-throttled",
	"server-restarted":                    "failover-window",
	"server-unavailable":                  "accept-backlog-overflow",
	"short-lived-connections":             "pool-idle-reap-redial",
	"slow-command":                        "lua-or-multi-long",
	"softirq-on-redis-core":               "server-cpu-contention",
	"stale-conn-server-timeout":           "pool-idle-reap-redial",
	"stale-topology-silent-master":        "failover-window",
	"swap":                                "cow-faults-after-fork",
	"sync-free-of-big-key":                "flush-sync",
	"timeout-discard-churn":               "pool-idle-reap-redial",
	"tls-handshake-storm":                 "short-lived-connections",
	"topology-refresh-storm":              "introspection-load",
}

// TestEachCauseHasItsRecordings: of each cause the corpus has a recording, judged with all sources, that names it, and
// one of a look-alike that does not.
func TestEachCauseHasItsRecordings(t *testing.T) {
	want := readGolden(t)
	for _, c := range cause.Catalogue() {
		if !slices.ContainsFunc(causesOf(ofIncidents(want, c.ID)), func(id string) bool { return id == c.ID }) {
			t.Errorf("%s: no recording of its incidents names it", c.ID)
		}
		other, is := lookAlike[c.ID]
		if !is {
			t.Errorf("%s has no look-alike", c.ID)
			continue
		}
		lines := ofIncidents(want, other)
		if lines == "" {
			t.Errorf("%s: the corpus has no recording of its look-alike %s", c.ID, other)
		}
		if slices.Contains(causesOf(lines), c.ID) {
			t.Errorf("%s is named in the recording of %s: %s", c.ID, other, lines)
		}
	}
}

// ofIncidents are the lines of an incident, and of its variants where it has no recording under its own name, with all
// sources.
func ofIncidents(lines map[string]string, id string) string {
	if own, is := lines[id+" T2"]; is {
		return own
	}
	var out []string
	for key, line := range lines {
		incident, tier, _ := strings.Cut(key, " ")
		if tier == "T2" && strings.HasPrefix(incident, id+"-") {
			out = append(out, line)
		}
	}
	return strings.Join(out, " | ")
}

// checkShares: no share and no confidence is below 0 or above 1, and the parts of the account are of the same whole.
func checkShares(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	explained := 0.0
	for _, f := range d.Findings {
		if f.Because == "" {
			explained += f.ExcessShare
		}
		if f.ClaimedShare < f.ExcessShare-1e-9 {
			t.Errorf("%s: %s explains %v of the lost time, and claims only %v", key, f.Cause, f.ExcessShare,
				f.ClaimedShare)
		}
		if !(f.ExcessShare >= 0 && f.ExcessShare <= 1) || !(f.Confidence >= 0 && f.Confidence <= 1) {
			t.Errorf("%s: %s has the share %v, confidence %v", key, f.Cause, f.ExcessShare, f.Confidence)
		}
	}
	if explained > 1.001 {
		t.Errorf("%s: the findings explain %v of the lost time", key, explained)
	}
	sum := 0.0
	for _, s := range d.Account {
		sum += s.Share
	}
	if sum > 1.001 {
		t.Errorf("%s: the shares of the account add up to %v", key, sum)
	}
	if d.Excess.UnexplainedNs > d.Excess.Ns {
		t.Errorf("%s: %d ns of %d unexplained", key, d.Excess.UnexplainedNs, d.Excess.Ns)
	}
}
