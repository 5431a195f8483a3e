package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/diagnose/compare"
)

// Bounds of comparisons: each takes a process of its own for some seconds.
const (
	compareTimeout  = 90 * time.Second
	minWindow       = 5 * time.Second
	maxWindow       = time.Hour
	defaultWindow   = 5 * time.Minute
	maxCompared     = 16 // results that are kept
	maxComparedSize = 1 << 20
)

// comparisons makes one comparison at a time, and keeps the newest results.
type comparisons struct {
	busy    chan struct{}
	mu      sync.Mutex
	results map[sides][]byte
	order   []sides
}

func newComparisons(Options) *comparisons {
	return &comparisons{busy: make(chan struct{}, 1), results: map[sides][]byte{}}
}

// side is what is compared: the recording of an incident, or a window of the ring.
type side struct {
	incident string
	from, to int64 // Unix seconds
}

type sides struct{ before, after side }

func (c *comparisons) kept(k sides) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, ok := c.results[k]
	return body, ok
}

func (c *comparisons) keep(k sides, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.results[k]; ok {
		return
	}
	if len(c.order) >= maxCompared {
		delete(c.results, c.order[0])
		c.order = c.order[1:]
	}
	c.results[k], c.order = body, append(c.order, k)
}

// compareParameters reads what is compared: mark and window, or of each side an incident, or from and to.
func (s *Server) compareParameters(r *http.Request) (k sides, err error) {
	window, err := durationParameter(r, "window", minWindow, maxWindow, defaultWindow)
	if err != nil {
		return k, err
	}
	mark, err := timeParameter(r, "mark")
	if err != nil {
		return k, err
	}
	now := s.o.Now()
	if !mark.IsZero() {
		after := mark.Add(window)
		if after.After(now) {
			after = now
		}
		k = sides{
			side{from: mark.Add(-window).Unix(), to: mark.Unix()}, side{from: mark.Unix(), to: after.Unix()},
		}
	} else {
		if k.before, err = s.sideParameters(r, "before", now, window); err != nil {
			return k, err
		}
		if k.after, err = s.sideParameters(r, "after", now, window); err != nil {
			return k, err
		}
	}
	kept := s.o.Health().Ring.From
	k.before = k.before.since(kept)
	if one, ok := s.o.Store.Get(k.before.incident); ok && r.URL.Query().Get("after") == "now" {
		k.after = k.after.since(one.End) // not the incident itself
	}
	k.after = k.after.since(kept)
	for _, one := range []side{k.before, k.after} {
		if err := s.checkSide(one); err != nil {
			return k, err
		}
	}
	return k, nil
}

// since is a window without what was before a time, where that leaves something of it.
func (one side) since(t time.Time) side {
	const shortest = int64(minWindow / time.Second)
	if begin := t.Unix() + 1; one.incident == "" && !t.IsZero() && one.from < begin && begin+shortest <= one.to {
		one.from = begin
	}
	return one
}

// sideParameters reads NAME (the id of an incident, or now: the last window) or NAME_from and NAME_to.
func (s *Server) sideParameters(r *http.Request, name string, now time.Time, window time.Duration) (side, error) {
	switch of := r.URL.Query().Get(name); {
	case of == "now":
		return side{from: now.Add(-window).Unix(), to: now.Unix()}, nil
	case of != "" && !incidentID.MatchString(of):
		return side{}, bad("%s=%s is neither now nor the id of an incident", name, quoted(of))
	case of != "":
		return side{incident: of}, nil
	}
	from, err := timeParameter(r, name+"_from")
	if err != nil {
		return side{}, err
	}
	to, err := timeParameter(r, name+"_to")
	if err != nil {
		return side{}, err
	}
	if from.IsZero() || to.IsZero() {
		return side{}, bad("what is compared is not said: give mark=TIME, or %s=INCIDENT, or %s_from and %s_to", name,
			name, name)
	}
	return side{from: from.Unix(), to: to.Unix()}, nil
}

func (s *Server) checkSide(one side) error {
	if one.incident != "" {
		if _, ok := s.o.Store.Get(one.incident); !ok {
			return notFound{"there is no incident " + one.incident}
		}
		return nil
	}
	from, to := time.Unix(one.from, 0), time.Unix(one.to, 0)
	kept := s.o.Health().Ring
	switch {
	case to.Sub(from) < minWindow:
		return bad("the window from %s is shorter than %v: wait, or choose a longer one", clockTime(from), minWindow)
	case to.Sub(from) > maxWindow:
		return bad("the window from %s is longer than %v", clockTime(from), maxWindow)
	case to.After(s.o.Now().Add(time.Second)):
		return bad("the window from %s ends in the future", clockTime(from))
	case kept.From.IsZero() || from.Before(kept.From.Add(-time.Second)):
		if kept.From.IsZero() {
			return notFound{"nothing is kept in full detail yet"}
		}
		return notFound{fmt.Sprintf("full detail is kept from %s on, and the window begins at %s", clockTime(kept.From),
			clockTime(from))}
	}
	return nil
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// compared makes a comparison, or gives the one that was made.
func (s *Server) compared(ctx context.Context, k sides) ([]byte, error) {
	if s.o.Save == nil || s.o.Compare == nil {
		return nil, notFound{"this agent cannot compare"}
	}
	if body, ok := s.compares.kept(k); ok {
		return body, nil
	}
	select {
	case s.compares.busy <- struct{}{}:
	default:
		return nil, tooBusy{"another comparison is being made: try again in a few seconds"}
	}
	defer func() { <-s.compares.busy }()
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	before, err := s.recordingOf(ctx, k.before, "before.slowpath")
	if err != nil {
		return nil, err
	}
	defer s.o.Temp.Remove("before.slowpath")
	after, err := s.recordingOf(ctx, k.after, "after.slowpath")
	if err != nil {
		return nil, err
	}
	defer s.o.Temp.Remove("after.slowpath")
	body, err := s.o.Compare(ctx, before, after)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, tooBusy{fmt.Sprintf("the comparison took longer than %v: choose shorter windows", compareTimeout)}
	case err != nil:
		return nil, err
	case len(body) > maxComparedSize:
		return nil, fmt.Errorf("the comparison has %d bytes, more than %d", len(body), maxComparedSize)
	}
	s.compares.keep(k, body)
	return body, nil
}

// tooBusy is an error that goes away.
type tooBusy struct{ said string }

func (e tooBusy) Error() string { return e.said }

// recordingOf is where the recording of a side is, for the process that compares: that of a window is made for that.
func (s *Server) recordingOf(ctx context.Context, one side, name string) (string, error) {
	if one.incident == "" {
		err := s.o.Save(ctx, time.Unix(one.from, 0), time.Unix(one.to, 0), s.o.Temp, name)
		return s.o.Temp.Path(name), err
	}
	in, err := s.o.Store.Folder(one.incident)
	if err != nil {
		return "", err
	}
	defer in.Close()
	return in.Path(incidents.RecordingFile), nil
}

// compareNow reads the request, and makes the comparison.
func (s *Server) compareNow(w http.ResponseWriter, r *http.Request) (sides, []byte, error) {
	k, err := s.compareParameters(r)
	if err != nil {
		return k, nil, err
	}
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{})
	_ = out.SetWriteDeadline(time.Now().Add(compareTimeout + writeTimeout))
	body, err := s.compared(r.Context(), k)
	return k, body, err
}

// compare answers GET /api/v1/compare.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) error {
	_, body, err := s.compareNow(w, r)
	if err != nil {
		return err
	}
	sendBytes(w, http.StatusOK, "application/json", body)
	return nil
}

// comparison reads what Options.Compare made.
func comparison(body []byte) (c compare.Comparison, err error) {
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("reading the comparison: %w", err)
	}
	return c, nil
}
