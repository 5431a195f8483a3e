package recording

import (
	"path/filepath"
	"testing"
)

// TestReadingTells: while a recording is read, the share of its rows that was read grows to 1.
func TestReadingTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.slowpath")
	w, err := Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta(MetaStart, "1000")
	const rows = 12_500
	for i := range int64(rows) {
		w.Sample(Sample{TimeNs: 1000 + i, Source: SourceServer, Subject: "a", Name: "b", Value: 1})
		w.Event(Event{TimeNs: 1000 + i, Source: SourceServer, Subject: "a", Kind: "c", Detail: "{}"})
		if i%1000 == 0 { // its queue drops what comes too fast
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, judge := range []bool{false, true} {
		var shares []float64
		_, err := Reading{ToJudge: judge, Progress: func(share float64) { shares = append(shares, share) }}.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range shares {
			if s < 0 || s > 1 || i > 0 && s < shares[i-1] {
				t.Fatalf("%v", shares)
			}
		}
		if len(shares) < 6 || shares[0] > 0.3 || shares[len(shares)-1] < 0.8 {
			t.Errorf("%v", shares)
		}
	}
}
