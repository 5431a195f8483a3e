package report

import (
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
)

// TestFirstScreens is TestFirstScreen of every scenario.
func TestFirstScreens(t *testing.T) {
	needs.Real(t)
	checkFirstScreens(t, corpus.Scenarios())
}
