package hostfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReadFileIsBounded: a file as long as the bound is read whole, a longer one is refused. These have holes.
func TestReadFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		size int64
		want error
	}{
		"empty":    {0, nil},
		"small":    {5, nil},
		"bound":    {MaxFile, nil},
		"too long": {MaxFile + 1, ErrTooLarge},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil {
			t.Fatal(err)
		}
		b, err := Root{Dir: dir}.ReadFile("/" + name)
		if !errors.Is(err, c.want) || err == nil && int64(len(b)) != c.size {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// TestReadFileGivesItsOwn: what was read stays, whatever is read next into the same buffer.
func TestReadFileGivesItsOwn(t *testing.T) {
	dir := t.TempDir()
	var read [2][]byte
	for i, text := range []string{"first", "other"} {
		if err := os.WriteFile(filepath.Join(dir, text), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if read[i], err = (Root{Dir: dir}).ReadFile("/" + text); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read[0], []byte("first")) {
		t.Errorf("%q", read[0])
	}
}
