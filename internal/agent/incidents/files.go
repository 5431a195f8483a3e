package incidents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/format"
)

// readAll reads what is in the directory. What is not of the store is left alone.
func (s *Store) readAll() error {
	entries, err := s.folder.Entries(maxEntries)
	if err != nil {
		return err
	}
	foreign := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), goneBefore) {
			_ = s.folder.RemoveAll(e.Name()) // its removal was cut short
			continue
		}
		own := strings.TrimPrefix(e.Name(), ".")
		if strings.HasPrefix(own, marksFile) || strings.HasPrefix(own, tryFile) {
			continue
		}
		if _, ok := startOf(e.Name()); !ok || !e.IsDir() {
			foreign++
			continue
		}
		s.all = append(s.all, s.readOne(e.Name()))
	}
	if foreign > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s in %s are no incidents and are left alone",
			format.Count(foreign, "file"), s.folder.Path()))
	}
	s.order()
	return nil
}

// readOne reads an incident. One whose file cannot be read keeps its place: what else is there of it is kept and shown.
func (s *Store) readOne(id string) *kept {
	k := &kept{}
	text, err := s.read(id, IncidentFile, maxIncidentBytes)
	if err == nil {
		err = json.Unmarshal(text, &k.Incident)
	}
	start, _ := startOf(id)
	if err != nil {
		if in, err2 := s.folder.Existing(id); err2 == nil {
			if !errors.Is(err, fs.ErrNotExist) { // else the agent was killed when it began
				s.setAside(in, IncidentFile, err)
			}
			in.Close()
		}
		k.Incident = Incident{Start: start, Error: clip("its file cannot be read: " + err.Error())}
	}
	k.ID = id
	if k.Start.IsZero() || k.Start.Unix() != start.Unix() {
		k.Start = start
	}
	s.measure(k)
	k.index()
	if k.State == StateJudged || k.State == StateFailed {
		return k
	}
	s.recover(k)
	if err := s.write(k); err != nil {
		k.unwritten = true
		s.notes = append(s.notes, fmt.Sprintf("incident %s: %v", id, err))
	}
	return k
}

// setAside gives a file that cannot be read another name, and keeps a sentence about it. mu need not be held: it is for
// Open.
func (s *Store) setAside(in *folder.Folder, name string, why error) {
	aside := name + ".damaged"
	sentence := fmt.Sprintf("%s cannot be read (%v): it is now %s", in.Path(name), why, aside)
	if err := in.Rename(name, aside); err != nil {
		sentence = fmt.Sprintf("%s cannot be read (%v)", in.Path(name), why)
	}
	s.damaged = append(s.damaged, sentence)
}

// recover ends an incident that an agent was working on when it was killed, or whose file cannot be read.
func (s *Store) recover(k *kept) {
	k.CutOff = k.State == StateWatching
	if k.End.IsZero() {
		k.End = k.Start
		if t := s.recorded(k.ID); t.After(k.Start) {
			k.End = t
		}
	}
	if text, err := s.read(k.ID, DiagnosisFile, maxDiagnosisBytes); err == nil {
		if d, err := parseDiagnosis(text); err == nil {
			d.into(&k.Incident)
			k.State, k.Error = StateJudged, ""
			s.notes = append(s.notes, "incident "+k.ID+" was judged when slowpath ended: its verdict is kept")
			return
		}
	}
	why := "slowpath ended before it was judged"
	if k.CutOff {
		why = "it was cut off: " + endedBefore
	}
	k.State, k.Error = StateFailed, cmp.Or(k.Error, why)
	if k.RecordingBytes > 0 {
		k.Error += "; its recording is kept: slowpath doctor judges it"
	}
	s.notes = append(s.notes, "incident "+k.ID+": "+k.Error)
}

// measure sums up the files of an incident.
func (s *Store) measure(k *kept) {
	k.bytes, k.RecordingBytes = 0, 0
	in, err := s.folder.Existing(k.ID)
	if err != nil {
		return
	}
	defer in.Close()
	entries, _ := in.Entries(maxEntries)
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		k.bytes += st.Size()
		if e.Name() == RecordingFile {
			k.RecordingBytes = st.Size()
		}
	}
}

// recorded is when the recording of an incident was written; zero: there is none.
func (s *Store) recorded(id string) time.Time {
	in, err := s.folder.Existing(id)
	if err != nil {
		return time.Time{}
	}
	defer in.Close()
	st, err := in.Lstat(RecordingFile)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime().UTC()
}

// read reads a file of an incident, of bounded size.
func (s *Store) read(id, name string, most int64) ([]byte, error) {
	in, err := s.folder.Existing(id)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Read(name, most)
}

// replace writes a file of an incident such that a crash leaves the old or the new one.
func (s *Store) replace(id, name string, text []byte) error {
	in, err := s.folder.Existing(id)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Replace(name, text)
}
