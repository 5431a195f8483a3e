package recording

import (
	"encoding/json"
)

// Meta keys.
const (
	MetaSchema    = "schema_version"
	MetaVersion   = "slowpath_version"
	MetaStart     = "start_ns"
	MetaEnd       = "end_ns"
	MetaTarget    = "target_address" // first target, without a password
	MetaNodes     = "nodes"          // JSON list of node addresses
	MetaKind      = "target_kind"    // standalone, cluster, proxy, unknown
	MetaServer    = "server"         // "redis 7.0.15"
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
