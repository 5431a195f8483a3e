package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// installed takes the host's own server when it has the version; the cache then only refers to it.
func installed(ctx context.Context, s Server, j job) (manifest, error) {
	path, err := exec.LookPath(s.program())
	if err != nil {
		return manifest{}, fmt.Errorf("%s is not installed", s.program())
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return manifest{}, fmt.Errorf("resolving %s: %w", path, err)
	}
	m := manifest{Origin: "installed as " + path, Program: path, File: file}
	got, err := m.binary(s, j.dir).version(ctx)
	if err != nil {
		return m, err
	}
	if got != s.Version {
		return m, fmt.Errorf("the installed %s is %s", path, got)
	}
	j.say("using the installed %s", path)
	return m, nil
}
