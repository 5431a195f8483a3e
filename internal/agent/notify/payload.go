package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/format"
)

// payload is the body for a receiver. before is what was sent of the same incident last; nil: nothing.
func (m Message) payload(f Format, before *Message, now time.Time) ([]byte, error) {
	switch f {
	case Slack:
		return json.Marshal(m.slack())
	case Alertmanager:
		return json.Marshal(m.alerts(before, now))
	case JSON:
	}
	return json.Marshal(m)
}

// numbers are the figures of a message in a line.
func (m Message) numbers() string {
	parts := []string{format.Count(m.SlowCalls, "slow call")}
	if m.Failed > 0 {
		parts = append(parts, format.Count(m.Failed, "failed call"))
	}
	if m.P99Ns > 0 {
		parts = append(parts, "p99 "+format.Duration(m.P99Ns))
	}
	if m.MaxNs > 0 {
		parts = append(parts, "worst "+format.Duration(m.MaxNs))
	}
	if m.Cause != "" {
		parts = append(parts, fmt.Sprintf("%s: %s of the lost time, confidence %s", m.Cause, format.Percent(m.Share),
			format.Percent(m.Certainty)))
	}
	return strings.Join(parts, " · ")
}

// window is when it was, in UTC.
func (m Message) window() string {
	start := m.Start.UTC().Format("2006-01-02 15:04:05")
	if m.End.IsZero() {
		return "since " + start + " UTC"
	}
	return start + "–" + m.End.UTC().Format("15:04:05") + " UTC"
}

// slackEscape is what Slack asks for: without it texts of clients could make links and mentions.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slack is a message for an incoming webhook: blocks, and a text for notifications.
func (m Message) slack() map[string]any {
	markdown := func(s string) map[string]any {
		return map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": s}}
	}
	plain := func(s string) map[string]any {
		return map[string]any{"type": "section", "text": map[string]any{"type": "plain_text", "text": s}}
	}
	where := m.Target + " · " + m.window()
	blocks := []any{plain(m.Summary), plain(where + "\n" + m.numbers())}
	if m.Fix != "" {
		fix := strings.ReplaceAll(slackEscape.Replace(m.Fix), "```", "'''")
		blocks = append(blocks, markdown("fix:\n```"+fix+"```"))
	}
	if m.Link != "" {
		blocks = append(blocks, markdown("<"+slackEscape.Replace(m.Link)+"|proof, callers, recording>"))
	}
	return map[string]any{"text": slackEscape.Replace(m.Summary + " (" + where + ")"), "blocks": blocks}
}

// alert is one of POST /api/v2/alerts.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt,omitzero"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// holds is for how long an alert of an incident that goes on stays active without another message: longer than an
// incident lasts, so that it does not end before it is told to.
const holds = 15 * time.Minute

// kept is for how long an alert of an incident that has ended stays active: Alertmanager groups alerts for half a
// minute by default before it tells somebody, and tells of no alert that has ended by then.
const kept = 5 * time.Minute

// alerts are one alert; and where the labels of the one before were others, such as its cause, that one's end.
func (m Message) alerts(before *Message, now time.Time) []alert {
	a := alert{
		Labels: m.labels(), StartsAt: m.Start, EndsAt: now.Add(holds), GeneratorURL: m.Link,
		Annotations: map[string]string{
			"summary": m.Summary, "numbers": m.numbers(), "when": m.window(), "trigger": m.Trigger,
		},
	}
	if !m.End.IsZero() {
		a.EndsAt = now.Add(kept)
	}
	if m.Fix != "" {
		a.Annotations["fix"] = m.Fix
	}
	if m.Link != "" {
		a.Annotations["link"] = m.Link
	}
	out := []alert{a}
	if before != nil && fmt.Sprint(before.labels()) != fmt.Sprint(a.Labels) {
		out = append(out, alert{
			Labels: before.labels(), StartsAt: before.Start, EndsAt: now,
			Annotations: map[string]string{"summary": "see the alert with the cause " + m.Cause},
		})
	}
	return out
}

func (m Message) labels() map[string]string {
	l := map[string]string{"alertname": "SlowpathIncident", "incident": m.ID, "severity": "warning"}
	if m.Target != "" { // Alertmanager refuses labels without a value in some versions
		l["target"] = m.Target
	}
	if m.Cause != "" {
		l["cause"] = m.Cause
	}
	if m.Verdict != "" {
		l["verdict"] = m.Verdict
	}
	return l
}
