package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"slowpath/internal/report/layout"
)

// Log writes one line per event. Texts of others in it cannot drive a terminal or forge a line.
type Log struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
	now  func() time.Time
}

// NewLog writes to out: text with the time, or one JSON object per line.
func NewLog(out io.Writer, asJSON bool) *Log { return &Log{out: out, json: asJSON, now: time.Now} }

// entry is a line of the log as JSON.
type entry struct {
	Time     string `json:"time"` // RFC 3339, UTC
	Level    string `json:"level"`
	Message  string `json:"message"`
	Incident string `json:"incident,omitempty"` // its id
}

// Say writes what happened as it should.
func (l *Log) Say(format string, args ...any) { l.write("info", "", fmt.Sprintf(format, args...)) }

// Warn writes what did not, and what is lost by it.
func (l *Log) Warn(format string, args ...any) { l.write("warning", "", fmt.Sprintf(format, args...)) }

// OfIncident writes what happened to an incident.
func (l *Log) OfIncident(id, format string, args ...any) {
	l.write("info", id, fmt.Sprintf(format, args...))
}

// Write implements io.Writer for the log of libraries, such as net/http.
func (l *Log) Write(p []byte) (int, error) {
	l.Warn("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func (l *Log) write(level, incident, text string) {
	e := entry{l.now().UTC().Format(time.RFC3339), level, layout.OneLine(text), incident}
	var line []byte
	if l.json {
		line, _ = json.Marshal(e) // strings always encode
	} else {
		line = []byte(e.Time)
		if level != "info" {
			line = append(line, ' ')
			line = append(line, level...)
			line = append(line, ':')
		}
		if incident != "" {
			line = append(line, " incident "+incident+":"...)
		}
		line = append(line, " "+e.Message...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(line, '\n')) // who reads the log may be gone; the watch goes on
}
