package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/recording"
)

// TestLimitedByGenerator: a load that the generator limited says so in every output, and no other does.
func TestLimitedByGenerator(t *testing.T) {
	for _, c := range []struct {
		by        string
		generator bool
	}{{bottleneck.ByGeneratorCPU, true}, {bottleneck.BySharedCPU, true}, {bottleneck.ByServerCPU, false}} {
		v := bottleneck.Verdict{
			By: c.by, Sentence: "thread at 99 %, \"mostly\"\nnot idle",
			GeneratorLimited: c.generator,
		}
		var rows, log bytes.Buffer
		csv := NewCSV(&rows)
		csv.Second(Second{Seconds: 1})
		csv.LimitedBy(c.by, v)
		hlog := NewHistogramLog(&log, []string{"GET"}, 1e18)
		hlog.LimitedBy(c.by, v)
		if csv.Err() != nil || hlog.Err() != nil {
			t.Fatal(csv.Err(), hlog.Err())
		}
		rec := recording.New()
		r := part(t, 0, 1, 1, 10)
		r.LimitedBy, r.Bottleneck = c.by, v
		if err := r.Record(rec, 1); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"csv": rows.String(), "hlog": log.String(),
			"recording": rec.Meta[recording.MetaLimitedBy],
		} {
			if strings.Contains(text, "LIMITED BY THE GENERATOR") != c.generator {
				t.Errorf("%s of %s: %s", name, c.by, text)
			}
		}
		if n := strings.Count(strings.TrimSpace(rows.String()), "\n"); c.generator &&
			(n != 2 || !strings.Contains(rows.String(), "\n# LIMITED")) {
			t.Errorf("the lines are %q", rows.String())
		}
		if _, err := hdrhistogram.NewHistogramLogReader(&log).NextIntervalHistogram(); err != nil {
			t.Errorf("the log cannot be read: %v", err)
		}
	}
}
