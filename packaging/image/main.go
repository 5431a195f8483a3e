// Command image writes slowpath as an OCI image for several architectures, without a daemon: a layout of the OCI image
// specification as one tar file, which podman, skopeo and docker (25 and newer) read. The same input gives the same
// bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// nonroot is the number of the image's user and of its group. It has no name on hosts.
const nonroot = 65532

func main() {
	version := flag.String("version", "", "of the package; a label")
	commit := flag.String("commit", "", "that it was built from; a label")
	epoch := flag.Int64("epoch", 0, "seconds since 1970 that all files have as their time")
	licence := flag.String("licence", "", "`file` with the licences of what the binary contains")
	out := flag.String("out", "", "tar `file` that is written")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "image [flags] ARCHITECTURE=BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	b := builder{version: *version, commit: *commit, created: time.Unix(*epoch, 0).UTC(), licence: *licence}
	if err := b.write(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// builder has what the images of all architectures share.
type builder struct {
	version, commit string
	created         time.Time
	licence         string // path
}

// write makes one image for each ARCHITECTURE=BINARY.
func (b builder) write(out string, binaries []string) error {
	if out == "" || len(binaries) == 0 {
		return fmt.Errorf("give -out FILE and ARCHITECTURE=BINARY")
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	layout, err := b.layout(dir)
	if err != nil {
		return err
	}
	for _, named := range binaries {
		arch, path, ok := strings.Cut(named, "=")
		if !ok {
			return fmt.Errorf("%s: give ARCHITECTURE=BINARY", strconv.Quote(named))
		}
		if err := layout.add(arch, path); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	if err := layout.finish(); err != nil {
		return err
	}
	return b.pack(dir, out)
}
