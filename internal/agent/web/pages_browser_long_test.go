package web_test

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestPagesOnAllScreens is TestPagesInBrowser on a phone, a laptop and a 4K screen, in both themes.
func TestPagesOnAllScreens(t *testing.T) {
	needs.Long(t, needs.Chromium)
	openPages(t, []string{"light", "dark"}, []int64{360, 1440, 3840}) // CSS pixels
}
