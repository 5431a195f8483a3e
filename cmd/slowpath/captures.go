package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

// captureName matches names that are those of captures, and no host's.
var captureName = regexp.MustCompile(`\.(pcap|pcapng|cap)(\.gz|\.zst)?$`)

// withCaptures makes a recording of a packet capture among the files, and gives the files to read instead. What it
// makes is removed when the command ends. Several files are recordings that are joined, and captures are not.
func (a *app) withCaptures(ctx context.Context, paths []string) ([]string, error) {
	for _, path := range paths {
		is, err := isCapture(path)
		switch {
		case err != nil:
			return nil, usage(err)
		case is && len(paths) > 1:
			return nil, usagef("%s is a packet capture, which cannot be joined with others: name it alone", path)
		case is:
			path, err = a.readCapture(ctx, path)
			return []string{path}, err
		}
	}
	return paths, nil
}

// isCapture reports whether a file begins as captures do. One that is not there is none.
func isCapture(path string) (bool, error) {
	if !recording.IsFile(path) {
		return false, nil
	}
	f, err := openNamed(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return capture.Is(head[:n]), nil
}

// readCapture makes a recording of a capture.
func (a *app) readCapture(ctx context.Context, path string) (made string, err error) {
	f, err := openNamed(path)
	if err != nil {
		return "", usage(err)
	}
	defer f.Close()
	dir, bytes, note, err := a.scratch.place(scratchParents())
	if err != nil {
		return "", err
	}
	if note != "" {
		a.notes([]string{note})
	}
	defer a.working("reading the capture")()
	made = filepath.Join(dir, "capture.slowpath")
	rec, err := recording.Create(made, min(bytes, recording.DefaultMaxDisk))
	if err != nil {
		return "", err
	}
	summary, err := capture.Read(ctx, f, capture.Options{Version: version}, rec)
	err = errors.Join(err, rec.Close())
	switch {
	case errors.Is(err, capture.ErrNotCapture):
		return "", usagef("%s: %w; tcpdump -w FILE tcp port 6379 makes one", path, err)
	case errors.Is(err, capture.ErrNoCalls):
		return "", usagef("%s: %w", path, err)
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", path, err)
	case summary.Truncated != "":
		a.notes([]string{fmt.Sprintf("%s: %s: the verdict is of the %d packets before", path, summary.Truncated,
			summary.Packets)})
	}
	return made, nil
}
