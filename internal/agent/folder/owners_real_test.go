package folder_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/agent/folder"
	"slowpath/internal/house/needs"
)

// TestDirectoryOfAnother: one that belongs to another user, or is below one of theirs, is refused.
func TestDirectoryOfAnother(t *testing.T) {
	needs.Real(t, needs.Root)
	const agent, other = 4321, 4322
	parent := t.TempDir()
	data := filepath.Join(parent, "data")
	check(t, os.Chmod(parent, 0o755), os.Mkdir(data, 0o700))
	for name, c := range map[string]struct {
		parent, data int
		want         string
	}{
		"of the agent":         {0, agent, ""},
		"of root":              {0, 0, ""},
		"below its own":        {agent, agent, ""},
		"of another":           {0, other, "belongs to the user 4322, and slowpath runs as 4321; chown 4321 "},
		"below one of another": {other, agent, "the user 4322, whose"},
	} {
		check(t, os.Chown(parent, c.parent, 0), os.Chown(data, c.data, 0))
		err := folder.CheckOwners(data, agent)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
