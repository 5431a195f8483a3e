// Package corpus has recordings of the lab's scenarios and healthy loads, compressed, for tests of everything that is a
// function of a recording. scripts/corpus makes them again.
package corpus

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"slowpath/internal/recording"
)

// Suffix of a recording in the corpus; what stands before it is the id of the scenario.
const Suffix = ".slowpath.zst"

// maxRecordingBytes bounds a recording that is unpacked.
const maxRecordingBytes = 64 << 20

//go:embed testdata/*.slowpath.zst
var files embed.FS

// Scenarios lists the ids of the scenarios that have a recording, sorted.
func Scenarios() []string {
	entries, err := files.ReadDir("testdata")
	if err != nil {
		panic(err) // it is embedded
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = strings.TrimSuffix(e.Name(), Suffix)
	}
	return ids
}

// Some are a part of Scenarios, always the same: what tests take that run for each change, again and again.
func Some() (ids []string) {
	const each = 20
	for i, id := range Scenarios() {
		if i%each == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Open unpacks and reads the recording of a scenario.
func Open(t testing.TB, scenario string) *recording.Recording {
	t.Helper()
	rec, err := Read(scenario, t.TempDir())
	if err != nil {
		t.Fatalf("corpus: %s: %v", scenario, err)
	}
	return rec
}

// Read unpacks the recording of a scenario to a file in a directory, reads it to be judged, and removes the file.
func Read(scenario, dir string) (*recording.Recording, error) {
	path := filepath.Join(dir, "recording.slowpath")
	defer os.Remove(path)
	if err := Unpack(scenario, path); err != nil {
		return nil, err
	}
	return recording.OpenToJudge(path)
}

// Unpack unpacks the recording of a scenario to a file, which must not exist.
func Unpack(scenario, path string) error {
	packed, err := files.Open("testdata/" + scenario + Suffix)
	if err != nil {
		return err
	}
	defer packed.Close()
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(z, maxRecordingBytes))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if n == maxRecordingBytes {
		return fmt.Errorf("longer than %d bytes", maxRecordingBytes)
	}
	return nil
}
