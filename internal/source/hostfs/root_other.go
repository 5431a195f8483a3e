//go:build !linux

package hostfs

import "os"

func openRaw(path string) (File, error) { return os.Open(path) }

func readWhole(path string) ([]byte, error) { return os.ReadFile(path) }
