package manyhosts

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Trim removes incidents that Fetch brought, the oldest first, until the folder has at most so many bytes. Those of the
// recordings that are named stay.
func Trim(dir string, most int64, stay []string) error {
	type kept struct {
		dir   string
		bytes int64
	}
	var all []kept
	sum := int64(0)
	err := filepath.WalkDir(filepath.Join(dir, "v1"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		if n := len(all); n > 0 && all[n-1].dir == filepath.Dir(path) {
			all[n-1].bytes += info.Size()
			return nil
		}
		all = append(all, kept{filepath.Dir(path), info.Size()})
		return nil
	})
	if err != nil || sum <= most {
		return err
	}
	stays := map[string]bool{}
	for _, path := range stay {
		stays[filepath.Dir(path)] = true
	}
	slices.SortFunc(all, func(a, b kept) int { return strings.Compare(filepath.Base(a.dir), filepath.Base(b.dir)) })
	for _, k := range all {
		if sum <= most || stays[k.dir] {
			continue
		}
		if err := os.RemoveAll(k.dir); err != nil {
			return err
		}
		sum -= k.bytes
	}
	return nil
}
