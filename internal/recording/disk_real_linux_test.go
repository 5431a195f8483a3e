package recording

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// TestFullDisk: a disk that gets full while a recording is written, and one that is full at its end. It is noticed when
// it happens; what was written before can be read, and that the end is missing is known.
func TestFullDisk(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := dir + "/x.slowpath"
	w := create(t, path, 0)
	w.SetMeta(MetaStart, "1")
	written := int64(0)
	await.Until(t, "the full disk is noticed", func() bool {
		select {
		case <-w.Failed():
			return true
		default:
		}
		for range 100 {
			written++
			w.Sample(Sample{TimeNs: written, Source: SourceServer, Subject: "a:1", Name: "n", Value: 1})
		}
		return false
	})
	w.SetMeta(MetaEnd, "99")
	err := w.Close()
	var cut *WriteError
	if !errors.As(err, &cut) || !strings.Contains(err.Error(), "filled its disk at") ||
		!strings.HasSuffix(err.Error(), "name a file on another disk") || strings.Contains(err.Error(), "\n") {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	spots := r.EventsOf(SourceRecording, SubjectSelf, KindBlindSpot)
	if n := int64(len(r.Series(SourceServer, "a:1", "n"))); n < 1000 || n >= written {
		t.Errorf("%d of %d samples", n, written)
	}
	if r.Meta[MetaEnd] == "99" || r.Meta[MetaEnd] != "" && len(spots) != 1 {
		t.Errorf("end %q, %+v", r.Meta[MetaEnd], spots)
	}
}
