package incidents

import (
	"errors"
	"time"
)

// Store is a directory of incidents. It is safe for concurrent use by one process.
type Store struct{}

// Open opens the store in a directory, which is made if it is not there. What a killed agent left is finished, or
// marked as failed.
func Open(dir string, l Limits) (*Store, error) { return nil, errors.ErrUnsupported }

// Begin adds an incident that is watched from now.
func (s *Store) Begin(trigger, target string, start time.Time) (Incident, error) {
	return Incident{}, errors.ErrUnsupported
}

// Update writes an incident that was changed: all but its ID.
func (s *Store) Update(Incident) error { return errors.ErrUnsupported }

// Finish keeps the diagnosis (slowpath.diagnosis/v1) of an incident, and takes cause, summary, verdict and numbers from
// it. It may be called again with a later diagnosis.
func (s *Store) Finish(id string, diagnosisJSON []byte) error { return errors.ErrUnsupported }

// Fail says why an incident could not be judged. Its recording is kept.
func (s *Store) Fail(id, why string) error { return errors.ErrUnsupported }

// List gives incidents, the newest first.
func (s *Store) List(Query) []Incident { return nil }

// Get gives one.
func (s *Store) Get(id string) (Incident, bool) { return Incident{}, false }

// Diagnosis is that of an incident: os.ErrNotExist where there is none.
func (s *Store) Diagnosis(id string) ([]byte, error) { return nil, errors.ErrUnsupported }

// RecordingPath is where the recording of an incident is, or is to be written. Its error is os.ErrNotExist where there
// is no such incident.
func (s *Store) RecordingPath(id string) (string, error) { return "", errors.ErrUnsupported }

// ReportPath is where the HTML report of an incident is, or is to be written.
func (s *Store) ReportPath(id string) (string, error) { return "", errors.ErrUnsupported }

// Mark adds a mark.
func (s *Store) Mark(Mark) error { return errors.ErrUnsupported }

// Marks are those in [from, to), the oldest first.
func (s *Store) Marks(from, to time.Time) []Mark { return nil }
