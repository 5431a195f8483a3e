package incidents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"slowpath/internal/format"
)

// readAll reads what is in the directory. What is not of the store is left alone.
func (s *Store) readAll() error {
	d, err := s.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("%s has more than %d entries: name another data directory", s.path, maxEntries)
	}
	foreign := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), goneBefore) {
			_ = s.root.RemoveAll(e.Name()) // its removal was cut short
			continue
		}
		if e.Name() == marksFile || strings.HasPrefix(e.Name(), "."+marksFile) {
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
			format.Count(foreign, "file"), s.path))
	}
	s.order()
	return nil
}

// readOne reads an incident. One that cannot be read keeps its place: its recording may be all there is.
func (s *Store) readOne(id string) *kept {
	k := &kept{}
	text, err := s.read(filepath.Join(id, incidentFile), maxIncidentBytes)
	if err == nil {
		err = json.Unmarshal(text, &k.Incident)
	}
	start, _ := startOf(id)
	if err != nil {
		k.Incident = Incident{Start: start, End: start, State: StateFailed, Error: clip("its file cannot be read: " +
			err.Error())}
		s.notes = append(s.notes, "incident "+id+": "+k.Error)
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
		s.notes = append(s.notes, fmt.Sprintf("incident %s: %v", id, err))
	}
	return k
}

// recover ends an incident that an agent was working on when it was killed.
func (s *Store) recover(k *kept) {
	if k.End.IsZero() {
		k.End = k.Start
		if st, err := s.root.Lstat(filepath.Join(k.ID, recordingFile)); err == nil && st.ModTime().After(k.Start) {
			k.End = st.ModTime().UTC()
		}
	}
	if text, err := s.read(filepath.Join(k.ID, diagnosisFile), maxDiagnosisBytes); err == nil {
		if d, err := parseDiagnosis(text); err == nil {
			d.into(&k.Incident)
			k.State, k.Error = StateJudged, ""
			s.notes = append(s.notes, "incident "+k.ID+" was judged when slowpath ended: its verdict is kept")
			return
		}
	}
	k.State, k.Error = StateFailed, "slowpath ended before it was judged"
	if k.RecordingBytes > 0 {
		k.Error += "; its recording is kept: slowpath doctor judges it"
	}
	s.notes = append(s.notes, "incident "+k.ID+": "+k.Error)
}

// measure sums up the files of an incident.
func (s *Store) measure(k *kept) {
	k.bytes, k.RecordingBytes = 0, 0
	d, err := s.root.Open(k.ID)
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxEntries)
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		k.bytes += st.Size()
		if e.Name() == recordingFile {
			k.RecordingBytes = st.Size()
		}
	}
}

// read reads a regular file of bounded size: no FIFO, which would wait for a writer, and nothing outside of the store.
func (s *Store) read(name string, most int64) ([]byte, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case st.Size() > most:
		return nil, fmt.Errorf("%s has more than %s", name, format.Bytes(most))
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// replace writes a file such that a crash leaves the old or the new one.
func (s *Store) replace(name string, text []byte) error {
	root := s.root
	dir, base := filepath.Split(name)
	unfinished := filepath.Join(dir, "."+base+".part")
	if err := root.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = root.Remove(unfinished)
		return err
	}
	if err := root.Rename(unfinished, name); err != nil {
		_ = root.Remove(unfinished)
		return err
	}
	if d, err := root.Open(filepath.Join(dir, ".")); err == nil {
		_ = d.Sync() // the name is safe, too
		d.Close()
	}
	return nil
}
