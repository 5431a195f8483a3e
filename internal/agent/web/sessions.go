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
	all map[[sha256.Size]byte]session // by a sum of the secret: looking it up tells nothing by its time
}

type session struct {
	end    time.Time
	tenant string
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[[sha256.Size]byte]session{}}
}

// begin gives the secret of a new session. Where there are too many, the oldest ends.
func (s *sessions) begin(tenant string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	for key, one := range s.all {
		if one.end.Before(s.now()) {
			delete(s.all, key)
		} else if first, ok := s.all[oldest]; !ok || one.end.Before(first.end) {
			oldest = key
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	value := secret()
	s.all[sha256.Sum256([]byte(value))] = session{s.now().Add(sessionAge), tenant}
	return value
}

// tenant is whose a session is, if there is such a session.
func (s *sessions) tenant(value string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[sha256.Sum256([]byte(value))]
	return one.tenant, ok && s.now().Before(one.end)
}

func (s *sessions) finish(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(value)))
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
