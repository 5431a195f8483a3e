package web

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	sessionAge     = 12 * time.Hour
	maxSessions    = 256
	maxFailures    = 10   // wrong tokens of one address in a minute
	maxFailureFrom = 1024 // addresses
)

// sessions are logins. They are kept in memory alone: a restart of the agent ends them.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	end map[[sha256.Size]byte]time.Time // by a sum of the secret: looking it up tells nothing by its time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, end: map[[sha256.Size]byte]time.Time{}}
}

// begin gives the secret of a new session. Where there are too many, the oldest ends.
func (s *sessions) begin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	for key, end := range s.end {
		if end.Before(s.now()) {
			delete(s.end, key)
		} else if first, ok := s.end[oldest]; !ok || end.Before(first) {
			oldest = key
		}
	}
	if len(s.end) >= maxSessions {
		delete(s.end, oldest)
	}
	value := secret()
	s.end[sha256.Sum256([]byte(value))] = s.now().Add(sessionAge)
	return value
}

func (s *sessions) has(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.end[sha256.Sum256([]byte(value))]
	return ok && s.now().Before(end)
}

func (s *sessions) finish(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.end, sha256.Sum256([]byte(value)))
}

// failures counts wrong tokens by address and minute.
type failures struct {
	now    func() time.Time
	mu     sync.Mutex
	minute time.Time
	from   map[string]int
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, from: map[string]int{}}
}

func (f *failures) add(from string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin()
	if _, ok := f.from[from]; ok || len(f.from) < maxFailureFrom {
		f.from[from]++
	}
}

// tooMany: the address guessed too often; so did an unknown one where too many addresses guess.
func (f *failures) tooMany(from string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin()
	n, ok := f.from[from]
	return n > maxFailures || !ok && len(f.from) >= maxFailureFrom
}

func (f *failures) begin() {
	if minute := f.now().Truncate(time.Minute); !minute.Equal(f.minute) {
		f.minute = minute
		clear(f.from)
	}
}
