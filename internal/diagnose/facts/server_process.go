package facts

import (
	"encoding/json"

	"slowpath/internal/recording"
)

// ServerPID is the process id of the server as this host sees it; 0 where the host source did not see the process.
func (n *Node) ServerPID() int {
	s, ok := n.Rec.SnapshotOf(recording.SourceHost, n.Address, "process")
	var p struct {
		PID int `json:"pid"`
	}
	if !ok || json.Unmarshal([]byte(s.Body), &p) != nil {
		return 0
	}
	return p.PID
}
