package matrix

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrFile says that a file holds no matrix, or one that cannot be gone on with.
var ErrFile = errors.New("not a matrix that can be resumed")

// fileLimit bounds a file, in bytes. A cell takes some 600.
const fileLimit = 16 << 20

// Parse reads a matrix. Errors match ErrFile.
func Parse(text []byte) (*Matrix, error) {
	var m Matrix
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("%w: schema %.40q, not %s", ErrFile, m.Schema, Schema)
	}
	if err := m.Settings.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	for i, c := range m.Cells {
		switch {
		case c.Client == "" || c.Server == "" || !slices.Contains(Topologies(), c.Topology):
			return nil, fmt.Errorf("%w: cell %d is of client %.40q, server %.40q, topology %.40q", ErrFile, i, c.Client,
				c.Server, c.Topology)
		case c.Calls < 0 || c.Errors < 0 || c.Errors > c.Calls || c.RequestsPerSecond < 0 || c.P50Ns < 0 ||
			c.P99Ns < c.P50Ns || c.MaxNs < 0 || c.MeanNs < 0:
			return nil, fmt.Errorf("%w: the figures of %.80q contradict each other", ErrFile, c.String())
		case slices.ContainsFunc(m.Cells[:i], c.Is):
			return nil, fmt.Errorf("%w: %.80q is there twice", ErrFile, c.String())
		}
	}
	if m.Cells == nil {
		m.Cells = []Cell{}
	}
	return &m, nil
}

// Resume reads the matrix that a run has kept; where there is no file, it is a new one. A file whose cells were
// measured in another way is refused, since they could not stand in one table. Errors match ErrFile, or are those of
// the file.
func Resume(path string, fresh *Matrix) (*Matrix, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fresh, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > fileLimit:
		return nil, fmt.Errorf("%s: %w: it is no file of at most %d bytes", path, ErrFile, fileLimit)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Settings != fresh.Settings {
		return nil, fmt.Errorf("%s: %w: its cells were measured otherwise (quick %v, http %v, %d workers, %v "+
			"counted, %v watched at %g of the calls/s): use the same options, or another file",
			path, ErrFile, m.Settings.Quick, m.Settings.HTTP, m.Settings.Workers, m.Settings.Duration, m.Settings.Watch,
			cmp.Or(m.Settings.WatchShare, 1))
	}
	m.Version = fresh.Version
	return m, nil
}

// Save writes the matrix to a file. The change is atomic: a killed run leaves the file as it was.
func (m *Matrix) Save(path string) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(m)
	if err != nil {
		return fmt.Errorf("keeping the matrix: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".slowpath-matrix-")
	if err != nil {
		return fmt.Errorf("keeping the matrix: %w", err)
	}
	defer os.Remove(tmp.Name()) // gone when it was renamed
	_, err = tmp.Write(body.Bytes())
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return fmt.Errorf("keeping the matrix: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("keeping the matrix: %w", err)
	}
	return nil
}
