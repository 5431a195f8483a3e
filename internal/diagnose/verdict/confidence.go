package verdict

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
)

// Calibration is how often findings were right in drawn scenarios whose truth was measured, by how their evidence is
// known. `slowpath lab grade --random N --calibration FILE` writes it.
type Calibration struct {
	Schema string            `json:"schema"` // slowpath.calibration/v1
	Runs   int               `json:"runs"`
	Seeds  [2]uint64         `json:"seeds"` // the least and the largest one
	Cells  []CalibrationCell `json:"cells"`
}

// CalibrationSchema names the format of a Calibration.
const CalibrationSchema = "slowpath.calibration/v1"

// CalibrationCell is a kind of findings.
type CalibrationCell struct {
	Grade cause.Grade `json:"grade"`
	// Few: they rest on fewer than fewKnown calls.
	Few bool `json:"few"`
	// Main: they explain most of the lost time, together with their consequences.
	Main  bool `json:"main"`
	Right int  `json:"right"`
	Of    int  `json:"of"`
}

const (
	// fewKnown: of fewer findings the share that was right says little.
	// Bound: statistics, 5 of 5 right are compatible with 45 % wrong at 95 % (1 - 0.05^(1/5)).
	fewKnown = 5
)

//go:embed calibration.json
var calibrationJSON []byte

// calibration is that of this program. A test reads it, too.
var calibration = func() Calibration {
	var c Calibration
	if err := json.Unmarshal(calibrationJSON, &c); err != nil || c.Schema != CalibrationSchema {
		panic(fmt.Sprintf("calibration.json: schema %q, %v", c.Schema, err))
	}
	return c
}()

// Calibrated is the calibration that the confidences of this program come from.
func Calibrated() Calibration { return calibration }

// Few tells whether a finding rests on few calls.
func Few(f cause.Finding) bool { return f.Samples < fewKnown }

// Main tells whether a finding explains most of the lost time.
func Main(f cause.Finding) bool { return f.ExcessShare >= degree.Most }

// Confidence is how often such findings were right, by the rule of succession: of none known, one half. Where too few
// of the grade are known, it is that of all grades.
func (c Calibration) Confidence(grade cause.Grade, few, most bool) float64 {
	var one, all CalibrationCell
	for _, cell := range c.Cells {
		if cell.Few != few || cell.Main != most {
			continue
		}
		all.Right, all.Of = all.Right+cell.Right, all.Of+cell.Of
		if cell.Grade == grade {
			one = cell
		}
	}
	if one.Of < fewKnown {
		one = all
	}
	return float64(one.Right+1) / float64(one.Of+2)
}

// rate sets how the evidence of a finding is known. calls were timed.
func rate(f *cause.Finding, calls int) {
	f.Grade = gradeOf(*f)
	if f.Samples == 0 { // else the cause knows better
		f.Samples = f.SlowCalls
	}
	if f.Samples == 0 { // it rests on the pattern of all calls
		f.Samples = calls
	}
	for range f.Doubts {
		f.Grade = f.Grade.Weaker()
	}
}

func gradeOf(f cause.Finding) cause.Grade {
	by := func(source string) bool {
		return slices.ContainsFunc(f.Evidence, func(e cause.Evidence) bool { return e.Source == source })
	}
	switch {
	case f.Grade != "":
		return f.Grade
	case by(recording.SourceTap):
		return cause.Seen
	}
	return cause.Counted
}
