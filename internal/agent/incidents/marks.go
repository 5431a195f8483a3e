package incidents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Bounds of marks.
const (
	marksFile    = "marks.json"
	maxMarks     = 1000 // then the oldest go
	maxMarkText  = 200  // characters
	maxMarkBytes = 4 << 20
)

// ErrBadMark says that a mark has no text or no time.
var ErrBadMark = errors.New("a mark needs a time and a text of at most 200 characters in one line")

// marks are those of a store, the oldest first.
type marks struct {
	mu  sync.Mutex
	all []Mark
}

// readMarks reads the marks.
func (s *Store) readMarks() {
	m := &s.marks
	text, err := s.folder.Read(marksFile, maxMarkBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &m.all)
	}
	if err != nil {
		m.all = nil
		s.setAside(s.folder, marksFile, err)
	}
	m.all = slices.DeleteFunc(m.all, func(v Mark) bool { return v.check() != nil })
	m.order()
}

func (m *marks) order() {
	slices.SortStableFunc(m.all, func(a, b Mark) int { return a.Time.Compare(b.Time) })
	if n := len(m.all); n > maxMarks {
		m.all = slices.Clone(m.all[n-maxMarks:])
	}
}

func (v Mark) check() error {
	if v.Time.IsZero() || v.Time.Year() < 1970 || v.Time.Year() > 9999 || strings.TrimSpace(v.Text) == "" ||
		len([]rune(v.Text)) > maxMarkText || strings.ContainsFunc(v.Text, unicode.IsControl) {
		return ErrBadMark
	}
	return nil
}

// Mark adds a mark. ErrBadMark: it is none. Of more than a thousand the oldest go.
func (s *Store) Mark(v Mark) error {
	v.Time, v.Text = v.Time.UTC(), strings.ToValidUTF8(strings.TrimSpace(v.Text), "?")
	if err := v.check(); err != nil {
		return err
	}
	m := &s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.all
	m.all = append(slices.Clone(m.all), v)
	m.order()
	text, err := json.Marshal(m.all)
	if err == nil {
		err = s.folder.Replace(marksFile, text)
	}
	if err != nil {
		m.all = before
		return fmt.Errorf("keeping the mark: %w", err)
	}
	return nil
}

// Marks are those in [from, to), the oldest first. A zero time is no bound.
func (s *Store) Marks(from, to time.Time) []Mark {
	m := &s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []Mark{}
	for _, v := range m.all {
		if !v.Time.Before(from) && (to.IsZero() || v.Time.Before(to)) {
			out = append(out, v)
		}
	}
	return out
}
