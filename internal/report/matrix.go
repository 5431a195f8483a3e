package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/lab/matrix"
)

// Matrix writes clients against servers for a person: a line per cell, by topology and server.
func Matrix(w io.Writer, m *matrix.Matrix, style Style) error {
	p := newPage(style)
	p.paragraph("", "", m.Summary(), bold)
	if m.Interrupted {
		p.paragraph("", "", "It was ended before all cells were measured.", alarm)
	}
	last := matrix.Cell{}
	for _, c := range m.Cells {
		if c.Server != last.Server || c.Topology != last.Topology {
			p.section(c.Server + ", " + topologyOf(c, m.Settings))
			p.cells(dim, matrixWidths, "CLIENT", "CALLS/S", "P50", "P99", "ERRORS")
		}
		last = c
		p.matrixCell(c)
	}
	p.gap()
	p.facts("", matrixSettings(m), dim)
	return p.to(w, "the matrix")
}

// MatrixJSON writes the document slowpath.matrix/v1.
func MatrixJSON(w io.Writer, m *matrix.Matrix) error { return document(w, "the matrix", m) }

var matrixWidths = []int{14, 9, 8, 8, 8}

// matrixCell prints the figures, and beside or below them what they mean.
func (p *page) matrixCell(c matrix.Cell) {
	name := pad(p.shorten(p.text(c.Client), matrixWidths[0]), matrixWidths[0])
	colour := none
	row := name
	if c.Measured() {
		for i, t := range matrixFigures(c) {
			row += " " + padLeft(p.text(t), matrixWidths[i+1])
		}
	} else {
		colour = dim
	}
	said := p.text(matrixMeaning(c))
	if columns(row)+2+columns(said) <= p.style.Width {
		p.line(p.in(colour, row+"  "+said))
		return
	}
	p.line(p.in(colour, row))
	p.paragraph("    ", "    ", said, dim)
}

// matrixFigures are in the order of the columns.
func matrixFigures(c matrix.Cell) []string {
	return []string{
		format.Thousands(int64(c.RequestsPerSecond + 0.5)), format.Duration(c.P50Ns),
		format.Duration(c.P99Ns), format.Thousands(c.Errors),
	}
}

// matrixMeaning is why there are no figures, or what limited them and what doctor found.
func matrixMeaning(c matrix.Cell) string {
	if !c.Measured() {
		return "no figures: " + c.Empty
	}
	var parts []string
	if c.LimitedBy != "" {
		parts = append(parts, "limit: "+c.LimitedBy)
	}
	switch {
	case c.Unwatched != "":
		parts = append(parts, "no verdict: "+c.Unwatched)
	case c.Finding != "":
		parts = append(parts, "doctor: "+strings.Join(slices.Concat([]string{c.Finding}, c.Others), ", then "))
	}
	if c.Errors > 0 {
		parts = append(parts, "last error: "+c.LastError)
	}
	return strings.Join(parts, "; ")
}

func topologyOf(c matrix.Cell, s matrix.Settings) string {
	if c.Topology == matrix.Cluster {
		return fmt.Sprintf("cluster of %s and %s", format.Count(s.Masters, "master"), format.Count(s.Masters*s.Replicas,
			"replica"))
	}
	return c.Topology
}

// matrixSettings says how the cells were measured.
func matrixSettings(m *matrix.Matrix) []string {
	s := m.Settings
	way := "each waits for its reply before its next call"
	if s.HTTP {
		way = "through the client's HTTP service"
	}
	watched := "doctor was not asked"
	if s.Watch > 0 {
		watched = fmt.Sprintf("then %v watched by doctor", s.Watch)
	}
	return []string{
		format.Count(s.Workers, "caller"), way, "9 GET to 1 SET of 1 byte",
		fmt.Sprintf("%v counted after %v", s.Duration, s.Warmup), watched,
		"all on one machine of " + format.Count(m.CPUs, "CPU"), m.Start.UTC().Format(time.DateTime) + " UTC",
	}
}
