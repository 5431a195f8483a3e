package web

import (
	"strings"
	"sync"
	"time"

	"slowpath/internal/report/layout"
)

// limitedLog passes on lines that others cause, at most maxLogLinesPerMin a minute.
type limitedLog struct {
	to  func(string)
	now func() time.Time

	mu     sync.Mutex
	minute time.Time
	lines  int
}

func (l *limitedLog) say(line string) {
	if l.to == nil {
		return
	}
	l.mu.Lock()
	if minute := l.now().Truncate(time.Minute); !minute.Equal(l.minute) {
		l.minute, l.lines = minute, 0
	}
	l.lines++
	n := l.lines
	l.mu.Unlock()
	switch {
	case n < maxLogLinesPerMin:
		l.to(layout.OneLine(line))
	case n == maxLogLinesPerMin:
		l.to("web: more lines follow, which are left out until the next minute")
	}
}

// Write implements io.Writer for the log of net/http, and that of the door: broken TLS handshakes and the like.
func (l *limitedLog) Write(p []byte) (int, error) {
	l.say("web: " + strings.TrimSpace(string(p)))
	return len(p), nil
}
