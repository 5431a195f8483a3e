package main

import (
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// images is a layout that is being written: one index with an image for each architecture.
type images struct {
	builder
	path  layout.Path
	index v1.ImageIndex
}

func (b builder) layout(dir string) (*images, error) {
	path, err := layout.Write(dir, empty.Index)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	return &images{builder: b, path: path, index: index}, err
}

// add puts the image of an architecture into the index.
func (l *images) add(arch, binary string) error {
	files, err := l.files(binary)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(files.open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: l.created}, CreatedBy: "slowpath " + l.version},
	})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: l.created}
	config.Config = v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/usr/bin/slowpath"},
		Cmd:        []string{"--help"},
		WorkingDir: "/var/lib/slowpath",
		Env:        []string{"PATH=/usr/bin", "HOME=/var/lib/slowpath"},
		Volumes:    map[string]struct{}{"/var/lib/slowpath": {}},
		Labels:     l.labels(),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return err
	}
	descriptor, err := partial.Descriptor(image)
	if err != nil {
		return err
	}
	descriptor.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	l.index = mutate.AppendManifests(l.index, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
	return nil
}

// finish writes the index under a tag.
func (l *images) finish() error {
	l.index = mutate.Annotations(l.index, l.labels()).(v1.ImageIndex)
	return l.path.AppendIndex(l.index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag(l.version),
	}))
}

func (b builder) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "slowpath",
		"org.opencontainers.image.description": "Finds out why calls to a Redis or Valkey server are slow",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.commit,
		"org.opencontainers.image.created":     b.created.Format("2006-01-02T15:04:05Z"),
	}
}

// tag is a version without what tags may not have.
func tag(version string) string { return strings.NewReplacer("~", "-", "+", "-").Replace(version) }
