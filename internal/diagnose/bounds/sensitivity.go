package bounds

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// SensitivityFile has what go run ./internal/diagnose/sensitivity found, from the root.
const SensitivityFile = "docs/bounds.json"

// Sensitivities is what hangs on bounds, by their names.
type Sensitivities map[string]Sensitivity

// Sensitivity is what hangs on a bound.
type Sensitivity struct {
	Value string `json:"value"` // of the bound, as the source had it
	// Read is the number of recordings whose diagnosis reads the bound.
	Read int `json:"read"`
	// LeftOut: the bound is used in constants and package variables only, or where no recording is judged.
	LeftOut bool `json:"left_out,omitempty"`
	// Changes are the recordings whose findings change, by the factor: "0.7" and "1.3".
	Changes map[string][]Change `json:"changes,omitempty"`
}

// Change is what changes in the findings of a recording.
type Change struct {
	Recording string `json:"recording"`
	// First is the first finding before and after, where it changes.
	First string `json:"first,omitempty"`
	// Found are other findings that appear (+) or vanish (-).
	Found string `json:"found,omitempty"`
}

// ReadSensitivities reads a file; none is there if it does not exist.
func ReadSensitivities(file string) (Sensitivities, error) {
	all := Sensitivities{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// Stale are the bounds of which nothing was found, or at another value, and names that are no bounds any more.
func (s Sensitivities) Stale(all []Bound) (names []string) {
	known := map[string]bool{}
	for _, b := range all {
		known[b.Name] = true
		if x, ok := s[b.Name]; !ok || x.Value != b.Value {
			names = append(names, b.Name)
		}
	}
	for name := range s {
		if !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Forget drops what was found of bounds that are no more, or had another value.
func (s Sensitivities) Forget(all []Bound) {
	value := map[string]string{}
	for _, b := range all {
		value[b.Name] = b.Value
	}
	for name, x := range s {
		if v, ok := value[name]; !ok || v != x.Value {
			delete(s, name)
		}
	}
}

// Write writes a file.
func (s Sensitivities) Write(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".bounds-*")
	if err != nil {
		return err
	}
	if err := errors.Join(s.Encode(f), f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), file)
}

// Encode writes them sorted by name.
func (s Sensitivities) Encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(s)
}
