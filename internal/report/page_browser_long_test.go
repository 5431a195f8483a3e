package report_test

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestPageOnAllScreens is TestPageInBrowser on a phone, a tablet, a laptop and a 4K screen, in both themes.
func TestPageOnAllScreens(t *testing.T) {
	needs.Long(t, needs.Chromium)
	openPages(t, []string{"light", "dark"}, []int64{360, 800, 1600, 3840})
}
