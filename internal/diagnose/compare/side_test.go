package compare

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/corpus"
)

// TestIntervalsAreOperations: the calls that are compared are those of the verdict, as long as their threads waited.
func TestIntervalsAreOperations(t *testing.T) {
	s := SideOf(corpus.Open(t, "unreachable-address"), "test")
	p := population(s, account.OfUsers)
	if p == nil || len(s.intervals[p.Name]) == 0 {
		t.Fatalf("no calls: %+v", s.Diagnosis.Populations)
	}
	all := hdrhistogram.New(1, 1e12, 2)
	for _, v := range s.intervals[p.Name] {
		all.Merge(v.calls)
	}
	if got := all.ValueAtQuantile(99); got < p.P99Ns*9/10 || got > p.P99Ns*11/10 || got < 100e6 {
		t.Errorf("p99 is %d ns, in the verdict %d", got, p.P99Ns)
	}
}
