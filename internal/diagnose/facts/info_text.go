package facts

import (
	"cmp"
	"net"
	"strconv"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// InfoText is the part of a reply of INFO that is text, from the server source's snapshot "info".
type InfoText struct {
	// TimeNs is when the reply came, in nanoseconds since the Unix epoch.
	TimeNs int64 `json:"-"`
	// RunID names the process of the server.
	RunID string `json:"run_id"`
	// Role is "master" or "slave".
	Role string `json:"role"`
	// MasterHost is the host name or the address of the master of a replica.
	MasterHost string `json:"master_host"`
	// FailoverState is the state of a FAILOVER that the server carries out: "no-failover" for none.
	FailoverState string `json:"master_failover_state"`
	// ClusterState is "ok" or "fail"; empty without a cluster.
	ClusterState string `json:"cluster_state"`
	// PausedReason is why clients are paused, "none" where they are not (valkey 8.1 and later).
	PausedReason string `json:"paused_reason"`
	// PausedActions are the commands that are paused: all, or writes.
	PausedActions string `json:"paused_actions"`
	// MaxMemoryPolicy is the parameter maxmemory-policy, which INFO has as well as CONFIG GET.
	MaxMemoryPolicy string `json:"maxmemory_policy"`
	// RedisVersion and ValkeyVersion are versions of the server; that of Valkey beside the one of Redis that it is
	// compatible with.
	RedisVersion  string `json:"redis_version"`
	ValkeyVersion string `json:"valkey_version"`
}

// Version is the version of the server.
func (t InfoText) Version() string { return cmp.Or(t.ValkeyVersion, t.RedisVersion) }

// infoTextsOf are those of a node, in order of time.
func infoTextsOf(rec *recording.Recording, address string) (out []InfoText) {
	for s, text := range Bodies[InfoText](rec, recording.SourceServer, "info", address) {
		if s.Subject == "" {
			text.TimeNs = s.TimeNs
			out = append(out, text)
		}
	}
	return out
}

// MasterAddress is the address of the master that a replica last named; empty where it has none.
func (n *Node) MasterAddress() string {
	if len(n.InfoTexts) == 0 {
		return ""
	}
	port, ok := n.Series(series.MasterPort).Last()
	host := n.InfoTexts[len(n.InfoTexts)-1].MasterHost
	if host == "" || !ok {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
