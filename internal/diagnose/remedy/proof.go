package remedy

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Proof is what came of a step that the lab carried out against a cause, as doctor had printed it.
type Proof struct {
	Cause    string `json:"cause"`
	Step     string `json:"step"`
	Library  string `json:"library,omitempty"` // whose option was set, of a setting
	Scenario string `json:"incident"`          // of the lab: slowpath lab run SCENARIO --apply-fix
	Server   string `json:"server"`
	Proven   bool   `json:"proven"`
	// Why it is not proven, in a sentence.
	Why string `json:"why,omitempty"`
	// LostBefore and LostAfter are the time that all callers together lost, in seconds per second of the watch.
	LostBefore float64 `json:"lost_before"`
	LostAfter  float64 `json:"lost_after"`
	// Of is the callers' time of the second watch without what they lost, in the same unit.
	Of float64 `json:"of"`
	// After is the verdict of the second watch: healthy, or the causes of its findings.
	After string `json:"after"`
	// Undone says that the step's undo was carried out, too, where it is a command.
	Undone bool `json:"undone,omitempty"`
}

//go:embed proofs.json
var proofsFile []byte

// Proofs are all, in the order of the file. It is written by `slowpath lab grade --apply-fix --json`.
var Proofs = parseProofs(proofsFile)

func parseProofs(file []byte) []Proof {
	var out struct {
		Proofs []Proof `json:"proofs"`
	}
	if err := json.Unmarshal(file, &out); err != nil {
		panic(fmt.Sprintf("proofs.json: %v", err)) // its tests have failed then
	}
	return out.Proofs
}

// ProofOf is the best proof of a step against a cause: that of the scenario with its name, if it is proven. It is nil
// where the lab has not carried it out.
func ProofOf(cause, step, library string) *Proof {
	var best *Proof
	for i, p := range Proofs {
		if p.Cause != cause || p.Step != step || library != "" && p.Library != "" && p.Library != library {
			continue
		}
		if best == nil || p.Proven && (!best.Proven || p.Scenario == cause) {
			best = &Proofs[i]
		}
	}
	return best
}
