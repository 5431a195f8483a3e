// Package foldertest opens folders for tests.
package foldertest

import (
	"testing"

	"slowpath/internal/agent/folder"
)

// Open opens a directory until the end of a test.
func Open(t testing.TB, path string) *folder.Folder {
	t.Helper()
	f, err := folder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
