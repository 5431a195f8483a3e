package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// PoolText writes a sweep of pools for a person: a line per size, by client.
func PoolText(w io.Writer, s *PoolSweep, style layout.Style) error {
	p := layout.New(style)
	for _, b := range s.Best {
		p.Paragraph("", "  ", b.Sentence, layout.Bold)
	}
	if len(s.Best) == 0 {
		p.Paragraph("", "", "No best size is shown.", layout.Bold)
	}
	if s.Interrupted {
		p.Paragraph("", "", "It was ended before all rounds were made.", layout.Alarm)
	}
	last := ""
	for _, r := range s.Rows {
		if r.Client != last {
			p.Section(fmt.Sprintf("%s on %s, %s", r.title(s.Rows), s.Server, s.topology()))
			p.Heads(poolWidths, "USE", "POOL", "CALLERS", "CONN", "CALLS/S", "P50", "P99", "MEAN", "ERRORS")
		}
		last = r.Client
		r.print(p)
	}
	p.Gap()
	p.Paragraph("", "", "Medians over the rounds, ± their 95 % interval; a ratio is that of loads of the same round. "+
		"POOL is the most connections that the client may have, CONN how many the server had of it.", layout.Dim)
	for _, note := range s.Notes {
		p.Paragraph("", "", note, layout.Dim)
	}
	p.Facts("", s.setting(), layout.Dim)
	return p.To(w, "the sweep")
}

// PoolJSON writes the document slowpath.pool-sweep/v1.
func PoolJSON(w io.Writer, s *PoolSweep) error { return layout.JSON(w, "the sweep", s) }

// columns: use, pool, callers, connections, calls/s with the interval, p50, p99, mean, errors
var poolWidths = []int{10, 5, 7, 5, 14, 7, 7, 7, 6}

// title names the client by what one of its rows says of its library.
func (r PoolRow) title(rows []PoolRow) string {
	i := slices.IndexFunc(rows, func(o PoolRow) bool { return o.Client == r.Client && o.Library != "" })
	if i < 0 {
		return r.Client
	}
	return r.Client + " (" + rows[i].Library + ")"
}

// print writes the numbers, and after or below them what they mean.
func (r PoolRow) print(p *layout.Page) {
	cells, colour := []string{r.Mode}, layout.Dim
	if r.Measured() {
		cells, colour = append(cells, r.numbers()...), layout.None
	} else if r.Empty == "" {
		cells = append(cells, fmt.Sprint(r.Pool))
	}
	printRow(p, colour, poolWidths, cells, r.meaning())
}

// numbers are in the order of the columns.
func (r PoolRow) numbers() []string {
	latency := func(e *experiment.Estimate) string { return format.Duration(int64(e.Value)) }
	open := "?"
	if r.Connections > 0 {
		open = fmt.Sprint(r.Connections)
	}
	return []string{
		fmt.Sprint(r.Pool), fmt.Sprint(r.Callers), open, perSecondText(*r.RequestsPerSecond), latency(r.P50Ns),
		latency(r.P99Ns), latency(r.MeanNs), format.Thousands(r.Errors),
	}
}

// perSecondText is "21 300 ±3.1 %": the larger side of the interval.
func perSecondText(e experiment.Estimate) string {
	text := format.Thousands(e.Value)
	if e.Low == nil || e.High == nil || e.Value <= 0 {
		return text
	}
	return text + " ±" + format.WholePercent(max(*e.High-e.Value, e.Value-*e.Low)/e.Value)
}

// meaning is why there are no numbers, or what limited them and what failed.
func (r PoolRow) meaning() string {
	var parts []string
	switch {
	case r.Empty != "" && !r.Measured():
		return "no figures: " + r.Empty
	case !r.Measured() && len(r.Failures) == 0:
		return "not measured"
	case r.LimitedBy != "" && r.LimitedRounds == len(r.Runs):
		parts = append(parts, "limit: "+r.LimitedBy)
	case r.LimitedBy != "":
		parts = append(parts, fmt.Sprintf("limit: %s in %d of %d rounds", r.LimitedBy, r.LimitedRounds, len(r.Runs)))
	}
	if n := len(r.Failures); n > 0 {
		parts = append(parts, fmt.Sprintf("failed in %s, the last: %s", format.Count(n, "round"),
			r.Failures[n-1].Error))
	}
	if r.Errors > 0 {
		parts = append(parts, Cell{ErrorKinds: r.ErrorKinds}.kinds()+"last error: "+r.LastError)
	}
	return strings.Join(parts, "; ")
}

func (s *PoolSweep) topology() string {
	return Cell{Topology: s.Topology}.topology(Settings{Masters: s.Settings.Masters, Replicas: s.Settings.Replicas})
}

// setting says how the rows were measured.
func (s *PoolSweep) setting() []string {
	q := s.Settings
	return []string{
		format.Count(q.Workers, "caller") + " that borrow", "each waits for its reply before its next call",
		"9 GET to 1 SET of 1 byte",
		fmt.Sprintf("%s in turns, %s counted after %s each", format.Count(q.Rounds, "round"),
			format.Interval(q.Duration), format.Interval(q.Warmup)),
		"all on one machine of " + format.Count(s.CPUs, "CPU"), s.Start.UTC().Format(time.DateTime) + " UTC",
	}
}
