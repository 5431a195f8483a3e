package verdict

import (
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/law"
)

// TestConfidence: it is how often findings of the grade were right; of a grade that is hardly known, how often any
// were.
func TestConfidence(t *testing.T) {
	c := Calibration{Cells: []CalibrationCell{
		{Grade: cause.Seen, Right: 97, Of: 98},
		{Grade: cause.Counted, Right: 3, Of: 8},
		{Grade: cause.Inferred, Right: 0, Of: 1},
		{Grade: cause.Seen, Few: true, Right: 4, Of: 8},
		{Grade: cause.Seen, Main: true, Right: 50, Of: 50},
	}}
	for _, tt := range []struct {
		grade cause.Grade
		few   bool
		want  float64
	}{
		{cause.Seen, false, 0.98},
		{cause.Counted, false, 0.4},
		{cause.Inferred, false, 101.0 / 109},
		{cause.Seen, true, 0.5},
		{cause.Counted, true, 0.5},
	} {
		if got := c.Confidence(tt.grade, tt.few, false); got != tt.want {
			t.Errorf("%s, few %v: %v, want %v", tt.grade, tt.few, got, tt.want)
		}
	}
	if got := (Calibration{}).Confidence(cause.Seen, false, false); got != 0.5 {
		t.Errorf("nothing known: %v", got)
	}
}

// TestCalibrationIsThere: the table of this program comes from runs, and knows every grade.
func TestCalibrationIsThere(t *testing.T) {
	if calibration.Runs == 0 || len(calibration.Cells) != 4*len(law.Grades) {
		t.Fatalf("%+v", calibration)
	}
	for _, cell := range calibration.Cells {
		if cell.Right < 0 || cell.Right > cell.Of {
			t.Errorf("%+v", cell)
		}
	}
}

// TestRate: evidence against a finding makes its grade weaker, and few calls say less.
func TestRate(t *testing.T) {
	f := cause.Finding{Grade: cause.Seen, Doubts: 1, SlowCalls: 2}
	if rate(&f, 1000); f.Grade != cause.Counted || f.Samples != 2 || !Few(f) {
		t.Errorf("%+v", f)
	}
	f = cause.Finding{Grade: cause.Seen, Doubts: 2}
	if rate(&f, 1000); f.Grade != cause.Inferred || f.Samples != 1000 || Few(f) {
		t.Errorf("%+v", f)
	}
}
