package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source is the files of a program, by their path in its directory.
type Source map[string][]byte

// Add adds a file or a directory of embedded sources, without tests, to a directory of the program.
func (s Source) Add(from fs.FS, to, name string) error {
	return fs.WalkDir(from, name, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(file, "_test.go") {
			return err
		}
		body, err := fs.ReadFile(from, file)
		rest := strings.TrimPrefix(strings.TrimPrefix(file, name), "/")
		if file == name {
			rest = path.Base(file)
		}
		if path.Base(rest) == "go.mod.txt" {
			rest = strings.TrimSuffix(rest, ".txt")
		}
		s[path.Join(to, rest)] = body
		return err
	})
}

// Gather makes a source of pairs of a directory in the program and a path in embedded sources.
func Gather(from fs.FS, pairs ...[2]string) (Source, error) {
	s := Source{}
	for _, p := range pairs {
		if err := s.Add(from, p[0], p[1]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hash depends on the names and contents of all files. 48 bits are enough to tell the sources of one program apart.
func (s Source) hash() string {
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%s %d\n%s", file, len(s[file]), s[file]) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

func (s Source) write(dir string) error {
	for file, body := range s {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}
