package ring_test

import (
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
)

// TestCorpusThroughTheRing: see throughTheRing.
func TestCorpusThroughTheRing(t *testing.T) {
	needs.Long(t)
	for _, scenario := range corpus.Scenarios() {
		t.Run(scenario, func(t *testing.T) { throughTheRing(t, scenario) })
	}
}
