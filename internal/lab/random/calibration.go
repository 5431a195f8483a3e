package random

import (
	"encoding/json"
	"io"

	"slowpath/internal/diagnose/law"
	"slowpath/internal/diagnose/verdict"
)

// Calibrate counts how often findings were right in all tiers of all series, by how their evidence is known.
func Calibrate(reports []Report) verdict.Calibration {
	c := verdict.Calibration{Schema: verdict.CalibrationSchema}
	for _, grade := range law.Grades {
		for _, few := range []bool{false, true} {
			for _, most := range []bool{true, false} {
				c.Cells = append(c.Cells, verdict.CalibrationCell{Grade: grade, Few: few, Main: most})
			}
		}
	}
	for _, report := range reports {
		for _, run := range report.Runs {
			if run.Failed() {
				continue
			}
			if c.Runs++; c.Runs == 1 {
				c.Seeds = [2]uint64{run.Seed, run.Seed}
			}
			c.Seeds = [2]uint64{min(c.Seeds[0], run.Seed), max(c.Seeds[1], run.Seed)}
			for _, tier := range run.Tiers {
				countFindings(c.Cells, tier.Findings)
			}
		}
	}
	return c
}

// WriteCalibration writes what Calibrate counts.
func WriteCalibration(w io.Writer, reports []Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(Calibrate(reports))
}

func countFindings(cells []verdict.CalibrationCell, findings []Finding) {
	for _, f := range findings {
		for i := range cells {
			if cells[i].Grade != f.Grade || cells[i].Few != f.Few || cells[i].Main != f.Main {
				continue
			}
			cells[i].Of++
			if f.Right {
				cells[i].Right++
			}
		}
	}
}
