package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// contents are the files of the image as a tar file in memory.
type contents []byte

func (c contents) open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c)), nil }

// files are the binary, and what a program expects of a system: users, a place for temporary files, the certificate
// authorities that the TLS of managed servers is checked by (Mozilla's, as golang.org/x/crypto has them).
func (b builder) files(binary string) (contents, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(b.licence)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	user := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\n"+
		"slowpath:x:%d:%[1]d::/var/lib/slowpath:/sbin/nologin\n", nonroot)
	group := fmt.Sprintf("root:x:0:\nslowpath:x:%d:\n", nonroot)
	for _, f := range []struct {
		name string // ends in / for a directory
		mode int64
		own  int
		text []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, []byte(group)},
		{"etc/passwd", 0o644, 0, []byte(user)},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/slowpath", 0o755, 0, program},
		{"usr/share/", 0o755, 0, nil},
		{"usr/share/licenses/", 0o755, 0, nil},
		{"usr/share/licenses/slowpath", 0o644, 0, licence},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{"var/lib/slowpath/", 0o750, nonroot, nil},
	} {
		h := &tar.Header{
			Name: f.name, Mode: f.mode, Uid: f.own, Gid: f.own, Size: int64(len(f.text)), ModTime: b.created,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if f.text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// authorities are the roots that hold without a further condition.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}
	return out.Bytes()
}

// pack writes a directory as a tar file, in the order of names.
func (b builder) pack(dir, out string) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{
			Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text)), ModTime: b.created,
			Format: tar.FormatUSTAR,
		}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return file.Close()
}
