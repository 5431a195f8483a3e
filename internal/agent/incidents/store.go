package incidents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"slowpath/internal/agent/folder"
)

// Names of the files of an incident, and of the store.
const (
	RecordingFile = "recording.slowpath"
	ReportFile    = "report.html"
	IncidentFile  = "incident.json"
	DiagnosisFile = "diagnosis.json"
	goneBefore    = ".gone-" // a directory that is being removed
	tryFile       = "try"    // whether a file can be written
)

// Bounds of what is read and written.
const (
	maxIncidentBytes  = 256 << 10 // of the longest texts, if JSON escapes each byte of them
	maxDiagnosisBytes = 32 << 20
	maxText           = 4 << 10 // bytes of a text of an incident
	maxEntries        = 100_000 // of the directory
)

// Store is the incidents in a directory. It is safe for concurrent use by one process.
type Store struct {
	folder *folder.Folder
	limits Limits
	now    func() time.Time

	mu    sync.Mutex
	all   []*kept // the oldest first
	notes []string
	// damaged are sentences about files that Open could not read
	damaged []string
	marks   marks
}

// kept is an incident and the size of its files.
type kept struct {
	Incident
	bytes int64
	lower string // its texts, to be searched
	// unwritten says that its file could not be written, and is not what is here.
	unwritten bool
}

// ErrUnwritten says that an incident was changed, and is kept in memory alone until Try can write it.
var ErrUnwritten = errors.New("it is kept in memory alone until it can be written")

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.MaxAge <= 0 {
		l.MaxAge = DefaultMaxAge
	}
	if l.MaxHealthyAge <= 0 {
		l.MaxHealthyAge = min(DefaultMaxHealthyAge, l.MaxAge)
	}
	if l.MaxCount <= 0 {
		l.MaxCount = DefaultMaxCount
	}
	return l
}

// Open opens the store in a directory of its own, which Close closes: a directory for each incident, and marks.json.
// What a killed agent left is finished, or marked as failed; Notes says so.
func Open(in *folder.Folder, l Limits) (*Store, error) {
	opened := time.Now()
	s := &Store{
		folder: in, limits: l.withDefaults(),
		// the wall clock may be set while the agent runs: nothing is older for that
		now: func() time.Time { return opened.Add(time.Since(opened)) },
	}
	if err := s.readAll(); err != nil {
		in.Close()
		return nil, fmt.Errorf("incidents: %w", err)
	}
	s.readMarks()
	s.mu.Lock()
	s.retire()
	s.mu.Unlock()
	return s, nil
}

// Path is the directory of the store, for the door of the agent.
func (s *Store) Path() string { return s.folder.Path() }

// Close frees the store.
func (s *Store) Close() error { return s.folder.Close() }

// Notes are sentences about what Open found that was not as it should be.
func (s *Store) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// Damaged are sentences about files that Open could not read, which have another name now.
func (s *Store) Damaged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.damaged)
}

// Unwritten reports whether an incident is kept in memory alone: Try writes it.
func (s *Store) Unwritten() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(k *kept) bool { return k.unwritten })
}

// Try writes a file of the size of an incident's and removes it, and then writes what could not be written before. The
// error says why nothing can be kept.
func (s *Store) Try() error {
	err := s.folder.Replace(tryFile, make([]byte, 4<<10))
	if err == nil {
		err = s.folder.Remove(tryFile)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, k := range s.all {
		if !k.unwritten {
			continue
		}
		err := s.write(k)
		if errors.Is(err, os.ErrNotExist) { // somebody removed its directory
			err = nil
		}
		k.unwritten = err != nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Begin adds an incident that is watched from now.
func (s *Store) Begin(trigger, target string, start time.Time) (Incident, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := Incident{
		Start: start.UTC(), State: StateWatching, Trigger: clip(trigger), Target: clip(target), Changed: s.nextChange(),
	}
	for n := 1; ; n++ {
		in.ID = in.Start.Format(idTime) + "-" + strconv.Itoa(n)
		err := s.folder.Mkdir(in.ID)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) || n > maxEntries {
			return Incident{}, fmt.Errorf("beginning an incident: %w", err)
		}
	}
	k := &kept{Incident: in}
	if err := s.write(k); err != nil {
		_ = s.folder.RemoveAll(in.ID)
		return Incident{}, err
	}
	s.all = append(s.all, k)
	s.order()
	s.retire()
	return k.Incident, nil
}

// Update writes an incident that was changed: all but its ID. The size of its recording is measured.
func (s *Store) Update(in Incident) error {
	return s.change(in.ID, func(k *kept) error {
		in.RecordingBytes = k.RecordingBytes
		in.Start, in.End = in.Start.UTC(), in.End.UTC()
		for _, text := range [...]*string{&in.Cause, &in.Summary, &in.Verdict, &in.Trigger, &in.Target, &in.Error} {
			*text = clip(*text)
		}
		k.Incident = in
		return nil
	})
}

// Finish keeps the diagnosis (slowpath.diagnosis/v1) of an incident, and takes cause, summary, verdict and numbers from
// it. It may be called again with a later diagnosis.
func (s *Store) Finish(id string, diagnosisJSON []byte) error {
	d, err := parseDiagnosis(diagnosisJSON)
	if err != nil {
		return fmt.Errorf("incident %s: %w", id, err)
	}
	return s.change(id, func(k *kept) error {
		if err := s.replace(id, DiagnosisFile, diagnosisJSON); err != nil {
			return err
		}
		d.into(&k.Incident)
		if k.Repeat = s.repeatOf(k.Incident); k.Repeat != nil {
			k.Summary = clip(k.Summary + " " + k.Repeat.String())
		}
		k.State, k.Error = StateJudged, ""
		if k.End.IsZero() {
			k.End = s.now().UTC()
		}
		return nil
	})
}

// Fail says why an incident could not be judged. Its recording is kept.
func (s *Store) Fail(id, why string) error {
	return s.change(id, func(k *kept) error {
		k.State, k.Error = StateFailed, clip(why)
		if k.End.IsZero() {
			k.End = s.now().UTC()
		}
		return nil
	})
}

// change changes an incident and writes it. Where it cannot be written, which is ErrUnwritten, it is changed all the
// same; after an error of f it stays as it was.
func (s *Store) change(id string, f func(*kept) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.find(id)
	if !found {
		return fmt.Errorf("incident %q: %w", id, os.ErrNotExist)
	}
	k := *s.all[i]
	if err := f(&k); err != nil {
		return fmt.Errorf("incident %s: %w", id, err)
	}
	k.ID = id
	k.Changed = s.nextChange()
	s.measure(&k)
	err := s.write(&k)
	k.unwritten = err != nil
	*s.all[i] = k
	s.retire()
	if err != nil {
		return fmt.Errorf("incident %s: %w: %w", id, ErrUnwritten, err)
	}
	return nil
}

// List gives incidents, the newest first.
func (s *Store) List(q Query) []Incident {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	text := strings.ToLower(q.Text)
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.all)
	if q.Before != "" {
		last, _ = s.find(q.Before)
	}
	out := []Incident{}
	for i := last - 1; i >= 0 && len(out) < q.Limit; i-- {
		k := s.all[i]
		if !q.To.IsZero() && !k.Start.Before(q.To) ||
			!q.From.IsZero() && !k.End.IsZero() && k.End.Before(q.From) ||
			text != "" && !strings.Contains(k.lower, text) {
			continue
		}
		out = append(out, k.Incident)
	}
	return out
}

// Get gives one.
func (s *Store) Get(id string) (Incident, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := s.find(id); found {
		return s.all[i].Incident, true
	}
	return Incident{}, false
}

// Diagnosis is that of an incident: os.ErrNotExist where there is none, or where its file is damaged.
func (s *Store) Diagnosis(id string) ([]byte, error) {
	in, err := s.Folder(id)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := in.Read(DiagnosisFile, maxDiagnosisBytes)
	if err != nil {
		return nil, err
	}
	if _, err := parseDiagnosis(text); err != nil {
		return nil, fmt.Errorf("incident %q: %w: %w; its recording is kept: slowpath doctor judges it", id,
			os.ErrNotExist, err)
	}
	return text, nil
}

// Folder opens the directory of an incident, in which its RecordingFile and ReportFile are, or are to be written. Its
// error is os.ErrNotExist where there is no such incident.
func (s *Store) Folder(id string) (*folder.Folder, error) {
	if _, found := s.Get(id); !found {
		return nil, fmt.Errorf("incident %q: %w", id, os.ErrNotExist)
	}
	return s.folder.Existing(id)
}

// OpenFile opens a file of an incident to read it: os.ErrNotExist where there is none.
func (s *Store) OpenFile(id, name string) (*os.File, error) {
	in, err := s.Folder(id)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Open(name)
}

// Usage is how many incidents there are, and how many bytes their files have.
func (s *Store) Usage() (incidents int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		bytes += k.bytes
	}
	return len(s.all), bytes
}

// find finds an incident, or where it would be.
func (s *Store) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.all, id, func(k *kept, id string) int { return compareIDs(k.ID, id) })
}

func (s *Store) order() {
	slices.SortFunc(s.all, func(a, b *kept) int { return compareIDs(a.ID, b.ID) })
}

// idTime is the begin of an ID.
const idTime = "20060102T150405Z"

// compareIDs orders ids by time; those of one second by their number.
func compareIDs(a, b string) int {
	cut := func(id string) (string, int) { return id[:min(len(id), len(idTime))], len(id) }
	ta, na := cut(a)
	tb, nb := cut(b)
	return cmp.Or(strings.Compare(ta, tb), cmp.Compare(na, nb), strings.Compare(a, b))
}

// startOf is the time in an id; false where it is none.
func startOf(id string) (time.Time, bool) {
	before, number, ok := strings.Cut(id, "-")
	t, err := time.Parse(idTime, before)
	n, err2 := strconv.Atoi(number)
	return t, ok && err == nil && err2 == nil && n > 0 && strconv.Itoa(n) == number && t.Format(idTime) == before
}

// write writes the file of an incident, and indexes its texts.
func (s *Store) write(k *kept) error {
	text, err := k.Document()
	if err != nil {
		return fmt.Errorf("writing incident %s: %w", k.ID, err)
	}
	k.index()
	return s.replace(k.ID, IncidentFile, text)
}

// Document is the incident as its file has it.
func (in Incident) Document() ([]byte, error) {
	text, err := json.MarshalIndent(in, "", "  ")
	return append(text, '\n'), err
}

func (k *kept) index() {
	k.lower = strings.ToLower(strings.Join(slices.Concat(
		[]string{k.ID, k.Cause, k.Summary, k.Trigger, k.Target, k.State}, k.Nodes, k.Callers, k.OtherCauses), "\n"))
}

// clip bounds a text of others.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxText {
		return text
	}
	text = text[:maxText]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

// retire removes the oldest incidents above the limits, and those that are too old, but none that is still worked on.
func (s *Store) retire() {
	var bytes int64
	for _, k := range s.all {
		bytes += k.bytes
	}
	count, now := len(s.all), s.now()
	stay := s.all[:0:0]
	for _, k := range s.all {
		age := s.limits.MaxAge
		if k.Verdict == "healthy" {
			age = s.limits.MaxHealthyAge
		}
		done := k.State == StateJudged || k.State == StateFailed
		old := now.Sub(maxTime(k.Start, k.End)) > age
		if done && (old || count > s.limits.MaxCount || bytes > s.limits.MaxBytes) && s.remove(k.ID) == nil {
			count--
			bytes -= k.bytes
			continue
		}
		stay = append(stay, k)
	}
	s.all = stay
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// remove removes an incident: a kill leaves no half of it.
func (s *Store) remove(id string) error {
	gone := goneBefore + id
	if err := s.folder.Rename(id, gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.folder.RemoveAll(gone)
}
