package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImage: an image of two architectures is valid, runs as nobody, has what it should have, and is the same again.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"amd64": "program A", "arm64": "program B", "licence": "free"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := builder{
		version: "1.2.3~rc1+dirty", commit: "c0ffee", created: time.Unix(1700000000, 0).UTC(),
		licence: filepath.Join(dir, "licence"),
	}
	var first []byte
	for _, out := range []string{"one.tar", "two.tar"} {
		out = filepath.Join(dir, out)
		binaries := []string{"amd64=" + filepath.Join(dir, "amd64"), "arm64=" + filepath.Join(dir, "arm64")}
		if err := b.write(out, binaries); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, text) {
			t.Error("a second build has other bytes")
		}
		first = text
	}
	index := opened(t, first)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %d entries", err, len(manifest.Manifests))
	}
	if got := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != "1.2.3-rc1-dirty" {
		t.Errorf("the tag is %q", got)
	}
	both, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	for arch, program := range map[string]string{"amd64": "program A", "arm64": "program B"} {
		checkImage(t, both, arch, program)
	}
}

// opened unpacks a layout.
func opened(t *testing.T, packed []byte) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	files := tar.NewReader(bytes.NewReader(packed))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func checkImage(t *testing.T, index v1.ImageIndex, arch, program string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == arch })
	if i < 0 {
		t.Fatalf("no image of %s", arch)
	}
	image, err := index.Image(manifest.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch || config.Config.User != "65532:65532" ||
		config.Config.Labels["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("%s: %+v", arch, config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%v, %d layers", err, len(layers))
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := false
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "usr/bin/slowpath" {
			text, _ := io.ReadAll(files) // compared
			found = string(text) == program && h.Mode == 0o755 && h.Uid == 0
		}
	}
	if !found {
		t.Errorf("the image of %s has not its program", arch)
	}
}

// TestAuthorities: there are some, and each can be read.
func TestAuthorities(t *testing.T) {
	if n := bytes.Count(authorities(), []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%d certificate authorities", n)
	}
}
