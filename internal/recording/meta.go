package recording

import (
	"encoding/json"
	"slices"
	"strings"
)

// Meta keys.
const (
	MetaSchema    = "schema_version"
	MetaVersion   = "slowpath_version"
	MetaStart     = "start_ns"
	MetaEnd       = "end_ns"
	MetaTarget    = "target_address" // first target, without a password
	MetaNodes     = "nodes"          // JSON list of node addresses
	MetaKind      = "target_kind"    // of the first target: standalone, cluster, proxy, unknown
	MetaServer    = "server"         // "redis 7.0.15"; several that differ are joined by ", "
	MetaServers   = "servers"        // JSON map of node addresses to NodeServer
	MetaHost      = "host"           // name of the host that watched
	MetaKernel    = "kernel"         // its release
	MetaSlow      = "slow_threshold" // "auto" or a Go duration
	MetaProbeRate = "probe_rate_per_second"
	// MetaProcessFilter is a JSON SelectedCalls, if the tap recorded the calls of selected processes only.
	MetaProcessFilter = "whom"
	// MetaSource + name is a JSON SourceStatus.
	MetaSource = "source:"
	// MetaDropped counts rows that were lost because the writer could not keep up.
	MetaDropped = "dropped_rows"
	// MetaThinned counts rows that were left out or deleted again to keep the file below its limit.
	MetaThinned = "thinned_rows"
)

// NodeServer is what answers at a node.
type NodeServer struct {
	Server string `json:"server"` // "redis 7.0.15"; empty: it does not say
	Kind   string `json:"kind"`   // as in MetaKind
}

// NodeMetas are the metas about nodes, of which the first one is the target. Without servers, as of an earlier
// recording, nothing is said of these.
func NodeMetas(nodes []string, servers map[string]NodeServer) map[string]string {
	metas := map[string]string{MetaTarget: nodes[0], MetaNodes: Detail(nodes)}
	if len(servers) == 0 {
		return metas
	}
	var names []string
	for _, n := range nodes {
		if name := servers[n].Server; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	metas[MetaKind], metas[MetaServer] = servers[nodes[0]].Kind, strings.Join(names, ", ")
	metas[MetaServers] = Detail(servers)
	return metas
}

// Servers are what answers at each node; nil: the recording does not say, but for MetaServer.
func (r *Recording) Servers() map[string]NodeServer { return ParseServers(r.Meta[MetaServers]) }

// ParseServers reads MetaServers; nil: it is none.
func ParseServers(meta string) (servers map[string]NodeServer) {
	if json.Unmarshal([]byte(meta), &servers) != nil {
		return nil
	}
	return servers
}

// ServerOf is the server at a node, such as "redis 7.0.15"; empty: it does not say. Earlier recordings have that of the
// first target alone.
func (r *Recording) ServerOf(node string) string {
	if servers := r.Servers(); servers != nil {
		return servers[node].Server
	}
	return r.Meta[MetaServer]
}

// SelectedCalls is the process filter of the tap, and how many calls it selected.
type SelectedCalls struct {
	Only    string   `json:"only"`           // as on the command line: --pid 123
	Calls   int64    `json:"calls"`          // of the selected processes' connections, slow or not
	Matched int      `json:"matched"`        // recorded calls of the selected processes
	Others  int      `json:"others"`         // calls of other processes that were left out
	Unknown int      `json:"unknown"`        // calls of processes that ended before they could be identified
	Seen    []string `json:"seen,omitempty"` // if no call matched: the processes whose calls were seen
}

// Equal compares all but Seen.
func (w SelectedCalls) Equal(o SelectedCalls) bool {
	return w.Only == o.Only && w.Calls == o.Calls && w.Matched == o.Matched && w.Others == o.Others &&
		w.Unknown == o.Unknown
}

// SelectedCallsOf reads the process filter; false if all calls were selected.
func SelectedCallsOf(meta map[string]string) (w SelectedCalls, ok bool) {
	text, ok := meta[MetaProcessFilter]
	return w, ok && json.Unmarshal([]byte(text), &w) == nil
}

// SourceStatus says whether a source took part, and if not, why.
type SourceStatus struct {
	Name string `json:"name"`
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}
