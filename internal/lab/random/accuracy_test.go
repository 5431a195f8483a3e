package random

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"slowpath/internal/house/golden"
)

// TestAccuracyDocument: docs/accuracy.md is what the kept results of unseen runs say (scripts/accuracy).
func TestAccuracyDocument(t *testing.T) {
	dir := t.TempDir()
	unpack(t, "testdata/unseen.tar.zst", dir)
	first, n, err := Kept(dir)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Series{Dir: dir, Seed: first, N: n, JudgeOnly: true, Done: func(Run) {}}.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Markdown(&text, []Report{Summarise(runs, first, n, "")}, "scripts/accuracy"); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../../../../docs/accuracy.md", text.Bytes())
}

// unpack unpacks the files of an archive into one directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(files)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
