package clients

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

	programs "slowpath/internal/lab/clients/programs"
)

// source is the files of a program, by their path in its directory.
type source map[string][]byte

// add adds a file or a directory of the embedded sources, without tests, to a directory of the program.
func (s source) add(to, from string) error {
	return fs.WalkDir(programs.Sources, from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(file, "_test.go") {
			return err
		}
		body, err := fs.ReadFile(programs.Sources, file)
		name := strings.TrimPrefix(strings.TrimPrefix(file, from), "/")
		if file == from {
			name = path.Base(file)
		}
		if path.Base(name) == "go.mod.txt" {
			name = strings.TrimSuffix(name, ".txt")
		}
		s[path.Join(to, name)] = body
		return err
	})
}

// hash depends on the names and contents of all files. 48 bits are enough to tell the sources of one program apart.
func (s source) hash() string {
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%s %d\n%s", file, len(s[file]), s[file]) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

func (s source) write(dir string) error {
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

// gather makes a source of pairs of a directory in the program and a path in the embedded sources.
func gather(pairs ...[2]string) (source, error) {
	s := source{}
	for _, p := range pairs {
		if err := s.add(p[0], p[1]); err != nil {
			return nil, err
		}
	}
	return s, nil
}
