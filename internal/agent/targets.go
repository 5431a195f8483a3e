package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Server is one that is watched, or should be.
type Server struct {
	Address string
	Found   bool   // on this host, and not named
	Watched bool   // now
	Why     string // it is not; empty: it was not tried yet
}

// servers are those that should be watched, and what is known of each. It is safe for concurrent use.
type servers struct {
	mu   sync.Mutex
	list []Server
	gone map[string]time.Time // since when a server that was found is not there any more
}

// Bounds and times.
const (
	maxFound  = 64               // servers of this host that are watched
	lookEvery = 30 * time.Second // for servers of this host, and for those that could not be reached
	// goneAfter is how long a server that was found may be away: it may come back, and why it went is to be seen.
	goneAfter    = 3 * time.Minute
	greetTimeout = 2 * time.Second
)

// all is a copy of the list.
func (s *servers) all() []Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// look takes what was found, or what is named, and reports whether the list is another one. A server that is not found
// any more stays for a while.
func (s *servers) look(addresses []string, found bool, now time.Time) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil {
		s.gone = map[string]time.Time{}
	}
	var list []Server
	for _, old := range s.list {
		switch since, away := s.gone[old.Address]; {
		case slices.Contains(addresses, old.Address):
			delete(s.gone, old.Address)
		case !old.Found || !found || away && now.Sub(since) >= goneAfter:
			delete(s.gone, old.Address)
			changed = true
			continue
		case !away:
			s.gone[old.Address] = now
		}
		list = append(list, old)
	}
	for _, address := range addresses {
		known := slices.ContainsFunc(list, func(o Server) bool { return o.Address == address })
		if !known && len(list) < maxFound {
			list = append(list, Server{Address: address, Found: found})
			changed = true
		}
	}
	s.list = list
	return changed
}

// set says of a server whether it is watched. It reports whether that is new.
func (s *servers) set(address string, watched bool, why string) (news bool) {
	why = layout.OneLine(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if o := &s.list[i]; o.Address == address {
			news = o.Watched != watched || o.Why != why
			o.Watched, o.Why = watched, why
		}
	}
	return news
}

// unwatched are the addresses of those that are not watched.
func (s *servers) unwatched() (out []string) {
	for _, o := range s.all() {
		if !o.Watched {
			out = append(out, o.Address)
		}
	}
	return out
}

// reach tries servers, all at once, and gives an error for each that a watch could not begin with now. What a watch
// takes as evidence, such as a process of this host that does not answer, is none.
func reach(ctx context.Context, targets []target.Target) []error {
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { _, errs[i] = source.Greet(ctx, t, greetTimeout) })
	}
	all.Wait()
	return errs
}

// mayBegin reports whether a watch of these could begin, for all that is known: to load the kernel programs in order to
// learn that nothing listens costs a second of CPU time.
func mayBegin(errs []error) bool {
	cannot := []error{
		target.ErrRefused, target.ErrNameNotFound, target.ErrUnreachable, target.ErrNoSocket, target.ErrPermission,
		target.ErrNotTLS, target.ErrUnknownAuthority, target.ErrHostname, target.ErrCertificate, target.ErrClientCert,
		session.ErrWrongPassword, session.ErrNoAuth,
	}
	return slices.ContainsFunc(errs, func(err error) bool {
		return !slices.ContainsFunc(cannot, func(e error) bool { return errors.Is(err, e) })
	})
}
