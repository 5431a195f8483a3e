package watching

import (
	"path/filepath"
	"runtime/debug"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/report"
)

// Comparison is how two recordings are held against each other.
type Comparison struct {
	*named.CommandLine
	AsJSON  bool
	Notable float64 // least change of a latency that counts, as a share
}

// Files compares recordings.
func (c *Comparison) Files(before, after string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	var sides [2]compare.Side
	c.InterruptEnds("nothing was compared")
	for i, path := range []string{before, after} {
		var err error
		if sides[i], err = c.sideOf(path); err != nil {
			return err
		}
	}
	return c.print(sides, [2]string{filepath.Base(before), filepath.Base(after)})
}

// sideOf judges one of two recordings.
func (c *Comparison) sideOf(path string) (compare.Side, error) {
	rec, err := c.Recordings([]string{path}, false)
	if err != nil {
		return compare.Side{}, err
	}
	defer c.Working("judging %s: %d calls and %d events", filepath.Base(path), len(rec.Calls), rec.EventCount())()
	return compare.SideOf(rec, c.Version), nil
}

// print prints the comparison and sets the exit code.
func (c *Comparison) print(sides [2]compare.Side, names [2]string) error {
	d := compare.Of(sides[0], sides[1], names, c.Notable)
	switch d.Verdict {
	case compare.Worse:
		c.Code = cli.ExitFindings
	case compare.Unknown:
		c.Code = cli.ExitUsage
	}
	if c.AsJSON {
		return report.CompareJSON(c.Stdout, d)
	}
	return report.Compare(c.Stdout, d, c.Style())
}
