package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Binary is a server on disk whose --version is the expected one.
type Binary struct {
	Server
	Dir string // directory in the cache, or of a program that was named by its path
	// executed file; its base name is the comm of the process: redis-server or valkey-server
	Path string
	File string   // the ELF file with the server's code, for uprobes; Path is the dynamic loader when they differ
	Lead []string // arguments before the server's own
	Env  []string // additions to the environment, KEY=value

	manifest manifest
}

// From is the server with another path to its directory in the cache, by which it is executed.
func (b Binary) From(dir string) Binary { return b.manifest.binary(b.Server, dir) }

// Argv is the full argument vector; Argv()[0] is Path. Env must be in the environment.
func (b Binary) Argv(args ...string) []string {
	argv := append([]string{b.Path}, b.Lead...)
	return append(argv, args...)
}

// Command returns a command that starts the server with the caller's environment and Env.
func (b Binary) Command(args ...string) *exec.Cmd {
	argv := b.Argv(args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), b.Env...)
	return cmd
}

// manifest is server.json in the directory of a server: how to execute it, with paths relative to that directory where
// they lie in it.
type manifest struct {
	Origin  string   `json:"origin"`
	Program string   `json:"program"` // executed file
	File    string   `json:"file"`    // file with the server's code
	Loader  bool     `json:"loader"`  // Program is (a link to) a dynamic loader of glibc ≥ 2.33, which knows --argv0
	Libs    []string `json:"libs,omitempty"`
}

const manifestFile = "server.json"

func (m manifest) write(dir string) error {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestFile), append(body, '\n'), 0o644)
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	body, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("reading %s of %s: %w", manifestFile, dir, err)
	}
	return m, nil
}

// binary makes the manifest absolute. The loader is executed through a link named like the server: the kernel takes the
// comm of a process from the executed path, so the process is found by name although /proc/PID/exe is the loader.
func (m manifest) binary(s Server, dir string) Binary {
	abs := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	b := Binary{Server: s, Dir: dir, Path: abs(m.Program), File: abs(m.File), manifest: m}
	libs := make([]string, len(m.Libs))
	for i, lib := range m.Libs {
		libs[i] = abs(lib)
	}
	path := strings.Join(libs, ":")
	switch {
	case m.Loader:
		b.Lead = []string{"--library-path", path, "--argv0", b.Path, b.File}
	case path != "":
		b.Env = []string{"LD_LIBRARY_PATH=" + path}
	}
	return b
}

// versionTimeout bounds `--version`, which takes a few milliseconds.
const versionTimeout = 20 * time.Second

// verify executes the server with --version and compares.
func (b Binary) verify(ctx context.Context) error {
	got, err := b.version(ctx)
	if err != nil {
		return err
	}
	if got != b.Version {
		return fmt.Errorf("%s --version says %s, wanted %s: the source has changed", b.Path, got, b.Version)
	}
	return nil
}

// version reads "Redis server v=7.0.15 sha=…" (redis server.c, version()), or of Envoy "COMMIT/1.40.0/Clean/…"
// (VersionInfo::version of its version.cc).
func (b Binary) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	argv := b.Argv("--version")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), b.Env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s --version: %w: %s", b.Path, err, lastLine(out))
	}
	for field := range strings.FieldsSeq(string(out)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v, nil
		}
		if parts := strings.Split(field, "/"); b.Product == envoyProduct && len(parts) == 5 {
			return parts[1], nil
		}
	}
	return "", errors.New(b.Path + " --version prints no version: " + lastLine(out))
}
