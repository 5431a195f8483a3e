package clients

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// The module files have the ending .txt because go:embed passes over directories that are modules of their own.
//
//go:embed options.go _go/workload.go _go/goredis9 _go/redigo _python/pyasync.py
var embedded embed.FS

// source is the files of a program by their path in its directory.
type source map[string][]byte

func goSource(name Name) (source, error) {
	dir := "_go/" + string(name)
	return read(map[string]string{
		"go.mod": dir + "/go.mod.txt", "go.sum": dir + "/go.sum", "main.go": dir + "/main.go",
		"workload.go": "_go/workload.go", "clients/options.go": "options.go",
	})
}

func pythonSource(name Name) (source, error) {
	file := string(name) + ".py"
	return read(map[string]string{file: "_python/" + file})
}

func read(files map[string]string) (source, error) {
	s := source{}
	for to, from := range files {
		body, err := fs.ReadFile(embedded, from)
		if err != nil {
			return nil, err
		}
		s[to] = body
	}
	return s, nil
}

// hash changes with every file's name and content; the first 48 bits tell the sources of one program apart.
func (s source) hash() string {
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%s %d\n%s", file, len(s[file]), s[file]) // a hash takes all writes
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

func (s source) write(dir string) error {
	for file, body := range s {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(file)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install returns the directory of a source in the cache. It is made beside its place and renamed there when build has succeeded, so
// that a killed attempt is never taken for a program; of two processes that do this at once the first one's stays.
func (c *Cache) install(name Name, s source, build func(dir string) error) (string, error) {
	final := filepath.Join(c.dir, string(name)+"-"+s.hash())
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	tmp, err := os.MkdirTemp(c.dir, ".tmp-"+string(name)+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // gone when it was renamed
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := s.write(tmp); err != nil {
		return "", err
	}
	if err := build(tmp); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return final, nil
}
