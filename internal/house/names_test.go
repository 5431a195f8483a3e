package house

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNamesTellApart: no two packages have one name, and no two files one of those that say nothing of what they have.
func TestNamesTellApart(t *testing.T) {
	vague := []string{"run.go", "table.go", "watch.go"}
	packages, files := map[string]string{}, map[string]string{}
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "_") {
			return filepath.SkipDir // modules of their own
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		dir := filepath.Dir(path)
		if other, ok := packages[filepath.Base(dir)]; ok && other != dir {
			t.Errorf("%s and %s: two packages of one name", other, dir)
		}
		packages[filepath.Base(dir)] = dir
		if !slices.Contains(vague, d.Name()) {
			return nil
		}
		if other, ok := files[d.Name()]; ok {
			t.Errorf("%s and %s: name files by what they have", other, path)
		}
		files[d.Name()] = path
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Error("no packages")
	}
}
