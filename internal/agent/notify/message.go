package notify

import (
	"encoding/json"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

// Schema names the JSON contract of a Message (docs/json.md).
const Schema = "slowpath.notification/v1"

// Message is what is told of an incident.
type Message struct {
	Schema    string    `json:"schema"`
	ID        string    `json:"id"`
	State     string    `json:"state"` // watching, judging, judged, failed
	Target    string    `json:"target"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end,omitzero"` // absent while it goes on
	Trigger   string    `json:"trigger"`
	Verdict   string    `json:"verdict"`
	Summary   string    `json:"summary"` // the verdict in a sentence
	Cause     string    `json:"cause"`   // empty: none was found
	Share     float64   `json:"excess_share"`
	Certainty float64   `json:"confidence"`
	SlowCalls int64     `json:"slow_calls"`
	Failed    int64     `json:"failed_calls"`
	P99Ns     int64     `json:"p99_ns,omitempty"`
	MaxNs     int64     `json:"max_ns,omitempty"`
	Fix       string    `json:"fix"` // the first step: a command, or a sentence
	Link      string    `json:"link"`
}

// Bounds of a message: texts in bytes.
const (
	maxText      = 1000
	maxDiagnosis = 32 << 20
)

// Of makes the message of an incident: its diagnosis (slowpath.diagnosis/v1) may be empty, link is its page.
func Of(i incidents.Incident, diagnosis []byte, link string) Message {
	m := Message{
		Schema: Schema, ID: i.ID, State: i.State, Target: text(i.Target), Start: i.Start, End: i.End,
		Trigger: text(i.Trigger), Verdict: text(i.Verdict), Summary: text(i.Summary), Cause: text(i.Cause),
		SlowCalls: i.SlowCalls, Failed: i.FailedCalls, Link: link,
	}
	if m.Summary == "" {
		m.Summary = m.Trigger
	}
	var d verdict.Diagnosis
	if len(diagnosis) > maxDiagnosis || json.Unmarshal(diagnosis, &d) != nil {
		return m
	}
	if len(d.Populations) > 0 {
		m.MaxNs = d.Populations[0].MaxNs
		if !m.End.IsZero() { // the first verdict is mostly of the time before the incident
			m.P99Ns = d.Populations[0].P99Ns
		}
	}
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		m.Share, m.Certainty = f.ExcessShare, f.Confidence
		if len(f.FixSteps) > 0 {
			if m.Fix = text(f.FixSteps[0].Command); m.Fix == "" {
				m.Fix = text(f.FixSteps[0].Text)
			}
		} else if len(f.Fix) > 0 {
			m.Fix = text(f.Fix[0])
		}
	}
	return m
}

// text makes what comes from servers and clients safe to show, and short.
func text(s string) string { return layout.Bound(layout.Clean(s), maxText) }
