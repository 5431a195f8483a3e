// Package views shows the map of a cluster, a watch of it, and what policies of refreshing it would lead to, as text
// and JSON. It formats, and computes nothing.
package views

import "slowpath/internal/report/layout"

type page struct{ *layout.Page }

func newPage(s layout.Style) *page { return &page{layout.New(s)} }
