package incidents

import (
	"encoding/json"
	"errors"
	"fmt"
)

// diagnosis is what is taken from a document slowpath.diagnosis/v1 (docs/json.md).
type diagnosis struct {
	Schema      string `json:"schema"`
	Verdict     string `json:"verdict"`
	Summary     string `json:"summary"`
	Populations []struct {
		Name        string `json:"name"`
		SlowCalls   int64  `json:"slow_calls"`
		FailedCalls int64  `json:"failed_calls"`
	} `json:"populations"`
	Latency struct {
		SlowCalls int64 `json:"slow_calls"`
	} `json:"latency"`
	Findings []struct {
		Cause string `json:"cause"`
	} `json:"findings"`
	Target struct {
		Nodes []string `json:"nodes"`
	} `json:"target"`
	Callers []struct {
		Name      string `json:"name"`
		SlowCalls int64  `json:"slow_calls"`
	} `json:"callers"`
}

// maxFoundBy bounds the nodes, the callers and the causes by which an incident is found, each.
const maxFoundBy = 16

func parseDiagnosis(text []byte) (d diagnosis, err error) {
	if len(text) > maxDiagnosisBytes {
		return d, fmt.Errorf("a diagnosis of %d bytes is too large", len(text))
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("its diagnosis is no JSON: %w", err)
	}
	if d.Schema != "slowpath.diagnosis/v1" || d.Verdict == "" {
		return d, errors.New("its diagnosis is no slowpath.diagnosis/v1")
	}
	return d, nil
}

// endedBefore is why an incident was cut off.
const endedBefore = "slowpath ended while it went on"

// into sets the fields of an incident. Slow calls are those of users, where they were seen.
func (d diagnosis) into(in *Incident) {
	in.Verdict, in.Summary, in.Cause = clip(d.Verdict), clip(d.Summary), ""
	if in.CutOff {
		in.Summary = clip(in.Summary + " It was cut off: " + endedBefore + ", and its end is not known.")
	}
	if len(d.Findings) > 0 {
		in.Cause = clip(d.Findings[0].Cause)
	}
	in.Nodes, in.Callers, in.OtherCauses = nil, nil, nil
	for _, n := range d.Target.Nodes {
		in.Nodes = appendFoundBy(in.Nodes, n)
	}
	slow := 0
	for _, c := range d.Callers {
		slow += int(min(c.SlowCalls, 1))
	}
	for _, c := range d.Callers {
		if slow == 0 || c.SlowCalls > 0 { // the others did not notice it
			in.Callers = appendFoundBy(in.Callers, c.Name)
		}
	}
	for i, f := range d.Findings {
		if i > 0 {
			in.OtherCauses = appendFoundBy(in.OtherCauses, f.Cause)
		}
	}
	in.SlowCalls, in.FailedCalls = max(d.Latency.SlowCalls, 0), 0
	for _, p := range d.Populations {
		if p.Name == "users" {
			in.SlowCalls = max(p.SlowCalls, 0)
		}
		in.FailedCalls += max(p.FailedCalls, 0)
	}
}

// appendFoundBy adds a text of others to a list that is bounded in both ways.
func appendFoundBy(all []string, text string) []string {
	const most = 200 // bytes
	if len(all) >= maxFoundBy || text == "" {
		return all
	}
	return append(all, clip(text[:min(len(text), most)]))
}
