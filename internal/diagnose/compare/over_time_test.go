package compare

import (
	"testing"
	"time"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
)

// TestCallsOverTime: slow calls are in the column in which they were made, and where the tap's histograms of a second
// are missing since it reads them a little less than once a second, those of the next one are of both.
func TestCallsOverTime(t *testing.T) {
	rec := corpus.Open(t, "healthy-mixed")
	d := verdict.Diagnose(rec, "test")
	o, ok := CallsOverTime(rec, d)
	if !ok || o.Population != "users" || o.Step != time.Second || len(o.Since) != len(o.Calls) {
		t.Fatalf("%v, %+v", ok, o)
	}
	var all int64
	covered := make([]bool, len(o.Calls))
	for i, column := range o.Calls {
		for row, n := range column {
			if all += n; n == 0 {
				continue
			}
			for k := o.Since[i]; k <= i; k++ {
				covered[k] = true
			}
			slow := row > 0 && o.UpToNs[row-1] >= d.Latency.SlowThresholdNs
			if at := d.Worst[0].Time.Sub(o.Start); slow && i != int(at/o.Step) {
				t.Errorf("slow calls in column %d; the worst call came after %v", i, at)
			}
		}
	}
	if all != int64(d.Populations[0].Calls) {
		t.Errorf("%d calls of %d", all, d.Populations[0].Calls)
	}
	for i, is := range covered {
		if !is {
			t.Errorf("column %d of %d is empty", i, len(covered))
		}
	}
	if o.Since[4] != 3 {
		t.Errorf("the recording has no histograms of its second 3; those after it are said to be of %v", o.Since)
	}
}
