//go:build linux

package tap

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// mappedFiles are files that a process has mapped, chosen by their last name: their paths on this host. Its errors are
// those of reading /proc/PID/maps, which may be too large.
func mappedFiles(files Files, pid uint32, want func(base string) bool) (out []string, err error) {
	maps, err := files.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(maps) {
		i := bytes.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		name := string(bytes.TrimSuffix(line[i:], []byte("\n"))) // a blank at its end is part of it
		if !want(filepath.Base(name)) || seen[name] {
			continue
		}
		seen[name] = true
		path := fmt.Sprintf("/proc/%d/root%s", pid, name)
		if _, replaced := strings.CutSuffix(name, " (deleted)"); replaced { // by an upgrade, while it runs
			span, _, _ := bytes.Cut(line, []byte(" "))
			path = fmt.Sprintf("/proc/%d/map_files/%s", pid, span)
		}
		out = append(out, files.Path(path))
	}
	return out, nil
}
