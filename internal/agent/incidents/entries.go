package incidents

import (
	"encoding/json"
	"fmt"
	"time"
)

// Edge is the calls that a caller made to a node in a time.
type Edge struct {
	FromNs    int64  `json:"from_ns"` // since the Unix epoch
	ToNs      int64  `json:"to_ns"`
	Caller    string `json:"caller"` // a process of this host, "worker.py[812]", or the address of another host
	Unit      string `json:"unit,omitempty"`
	Container string `json:"container,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Library   string `json:"library,omitempty"` // "redis-py 5.0.1"
	Node      string `json:"node"`
	Calls     int64  `json:"calls"`
	Slow      int64  `json:"slow,omitempty"`
	LostNs    int64  `json:"lost_ns,omitempty"` // time of its slow calls beyond the slow threshold
}

// Change is what was changed, as slowpath.diagnosis/v1 has it (docs/json.md).
type Change struct {
	Kind     string    `json:"kind"`
	Text     string    `json:"text"`
	By       []string  `json:"by,omitempty"`
	Node     string    `json:"node,omitempty"`
	Source   string    `json:"source"`
	Time     time.Time `json:"time"`
	WithinNs int64     `json:"within_ns"`
}

// Entry is what a history has beside minutes: an edge, or a change.
type Entry struct {
	At     int64   `json:"-"` // its number: when it was added, in nanoseconds since the Unix epoch, or later
	Edge   *Edge   `json:"edge,omitempty"`
	Change *Change `json:"change,omitempty"`
}

// maxEntry bounds an entry in bytes.
const maxEntry = 16 << 10

// AddEntries adds entries. One that is too large is left out.
func (h *History) AddEntries(all []Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now().UnixNano()
	for _, e := range all {
		body, err := json.Marshal(e)
		if err != nil || len(body) > maxEntry {
			continue
		}
		_, err = h.db.Exec("INSERT INTO entry SELECT max(?, coalesce(max(at), 0) + 1), ? FROM entry", now, string(body))
		if err != nil {
			return fmt.Errorf("keeping entries of history: %w", err)
		}
		h.added++
	}
	if h.added < tidyEach {
		return nil
	}
	return h.tidy()
}

// EntriesAfter are those with a higher number, at most so many.
func (h *History) EntriesAfter(at int64, most int) (out []Entry, err error) {
	rows, err := h.db.Query("SELECT at, body FROM entry WHERE at > ? ORDER BY at LIMIT ?", at, most)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var body string
		if err := rows.Scan(&e.At, &body); err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		_ = json.Unmarshal([]byte(body), &e) // of another version: neither an edge nor a change
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return out, nil
}
