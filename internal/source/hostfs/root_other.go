//go:build !linux

package hostfs

import (
	"io"
	"os"
)

func openRaw(path string) (File, error) { return os.Open(path) }

func readWhole(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(b) > MaxFile {
		err = tooLarge(path, MaxFile)
	}
	return b, err
}

// blockDevice is not known.
func blockDevice(Named, os.FileInfo) string { return "" }
