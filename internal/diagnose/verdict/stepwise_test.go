package verdict

import (
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// TestStepwise: each cause is told before it is asked.
func TestStepwise(t *testing.T) {
	rec := recording.New()
	rec.Index()
	asked, all := 0, len(cause.Catalogue())
	Stepwise(facts.New(rec), "x", func(nth, of int) {
		if asked++; nth != asked || of != all {
			t.Fatalf("%d of %d, want %d of %d", nth, of, asked, all)
		}
	})
	if asked != all {
		t.Errorf("%d of %d", asked, all)
	}
}
