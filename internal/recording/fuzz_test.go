package recording

import (
	"os"
	"testing"
)

// FuzzOpen changes bytes of a real recording and cuts it: an error, or a recording whose times are in order and whose
// rows are not more than there were.
func FuzzOpen(f *testing.F) {
	path := small(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("SQLite format 4"), uint32(0))
	f.Add(uint32(16), []byte{0x02, 0}, uint32(0)) // the page's size
	f.Add(uint32(100), []byte{5}, uint32(0))      // the kind of the first page
	f.Add(uint32(28), []byte{0xff, 0xff, 0xff, 0xff}, uint32(4096))
	f.Fuzz(func(t *testing.T, at uint32, change []byte, less uint32) {
		body := append([]byte(nil), whole...)
		copy(body[int(at)%len(body):], change)
		body = body[:len(body)-int(less)%len(body)]
		changed := file(t)
		if err := os.WriteFile(changed, body, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(changed)
		if err != nil {
			return
		}
		if start, end := r.Window(); end < start {
			t.Errorf("it lasts from %d to %d", start, end)
		}
		if len(r.Calls) > 1000 || len(r.Histograms) > 1000 || len(r.Snapshots) > 1000 {
			t.Errorf("%d calls, %d histograms, %d snapshots", len(r.Calls), len(r.Histograms), len(r.Snapshots))
		}
		for _, c := range r.Calls {
			if c.EndNs < c.IntendedNs {
				t.Errorf("a call ends before it begins: %+v", c)
			}
		}
	})
}
