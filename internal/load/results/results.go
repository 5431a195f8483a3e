// Package results shows what loads came to, as text, JSON and pages. It formats, and computes nothing.
package results

import "slowpath/internal/report/layout"

type page struct{ *layout.Page }

func newPage(s layout.Style) *page { return &page{layout.New(s)} }
