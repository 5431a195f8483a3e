package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"slowpath/internal/format"
)

// Space for the recording of a watch that nobody asked to keep.
const (
	leastSpace = 8 << 20  // bytes that must be free
	mostMemory = 64 << 20 // bytes that it takes of a directory in memory
	inMemory   = "/dev/shm"
)

// Scratch is what is removed where a command ends at once: the directory of a recording that nobody asked to keep, and
// files in which there is nothing yet.
type Scratch struct {
	mu    sync.Mutex
	dir   string
	files []string
}

// Begun is a file in which there is nothing yet.
func (s *Scratch) Begun(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, path)
}

// Whole is a file that stays, or that was removed.
func (s *Scratch) Whole(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = slices.DeleteFunc(s.files, func(f string) bool { return f == path })
}

// Make makes the directory in parent, or in the default directory for temporary files if that is empty.
func (s *Scratch) Make(parent string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp(parent, "slowpath-")
	s.dir = dir
	return dir, err
}

// Adopt takes a directory that another slowpath has made.
func (s *Scratch) Adopt(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
}

// Path is empty where there is none.
func (s *Scratch) Path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

func (s *Scratch) Remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// removeAll is remove, and removes the files, too.
func (s *Scratch) removeAll() {
	s.Remove()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.files {
		for _, of := range []string{path, path + "-wal", path + "-shm"} { // the last two of SQLite
			os.Remove(of)
		}
	}
}

// ScratchParents are where such a directory can be, the best first.
func ScratchParents() []string { return []string{os.TempDir(), "/var/tmp", inMemory} }

// Place makes the directory in the first of the parents that has space, and says how many bytes the recording may take:
// three quarters of what is free, since others need space as well. A note says so where that is not the first.
func (s *Scratch) Place(parents []string) (dir string, bytes int64, note string, err error) {
	var refused []string
	for _, parent := range parents {
		var free int64
		dir, err := s.Make(parent)
		if err == nil {
			free, err = freeBytes(dir)
		}
		if err == nil && free < leastSpace {
			err = fmt.Errorf("%s has only %s free", parent, format.Bytes(free))
		}
		if err != nil {
			s.Remove()
			refused = append(refused, err.Error())
			continue
		}
		if bytes = free / 4 * 3; parent == inMemory {
			bytes = min(bytes, mostMemory)
		}
		if len(refused) > 0 {
			note = fmt.Sprintf("%s: this watch is recorded in %s", refused[0], parent)
		}
		return dir, bytes, note, nil
	}
	return "", 0, "", errors.New("no place for the recording of this watch: " + strings.Join(refused, "; ") +
		"; set TMPDIR to a directory with " + format.Bytes(leastSpace) + " free, or give --record FILE")
}

// ScratchPlace is the best place for such a directory, and says where that is not the first.
func (p *Program) ScratchPlace() (dir string, bytes int64, err error) {
	dir, bytes, note, err := p.Scratch.Place(ScratchParents())
	if note != "" {
		p.Say(note)
	}
	return dir, bytes, err
}

// freeBytes is how much a user may still write into the file system of a directory.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
