package apps

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/house/needs"
)

// TestVisitorsMeasure: the slices have the pages of the lines, and a page that fails lasts until the next one that does
// not.
func TestVisitorsMeasure(t *testing.T) {
	needs.Real(t)
	var pages atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := pages.Add(1); n%10 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Write([]byte("a page"))
	}))
	defer site.Close()
	out := newCollector()
	v := startVisitors(site.URL+"/", Options{Rate: 400, Slice: 50 * time.Millisecond}, out)
	<-out.worked // a second has ended
	v.end()
	r := &Running{collector: out, visitors: v}
	counted := r.Stats().Operations()[0]
	start, slices := r.Measured()
	var operations, failed int64
	for _, s := range slices {
		operations, failed = operations+s.Operations, failed+s.Failed
	}
	// pages that were interrupted at the end are in the slices only
	if operations < counted.Done || operations > counted.Done+Visitors || failed < counted.Errors ||
		counted.Errors == 0 {
		t.Errorf("%d pages, %d failed; lines have %+v", operations, failed, counted)
	}
	if time.Since(start) < time.Duration(len(slices)-1)*50*time.Millisecond {
		t.Errorf("%d slices since %v", len(slices), start)
	}
}
