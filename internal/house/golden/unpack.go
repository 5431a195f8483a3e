package golden

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Unpack unpacks a .tar.zst of testdata into a directory.
func Unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", archive))
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
		if err == nil && h.Typeflag == tar.TypeReg {
			err = unpack(files, filepath.Join(dir, h.Name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpack(from io.Reader, path string) error {
	body, err := io.ReadAll(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, body, 0o600)
	}
	return err
}
