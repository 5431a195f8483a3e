package probing

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/source/probe"
)

// Columns of an interval's line: the time, the kept connection, fresh connections, and, where there are several, the
// target.
const (
	intervalColumns = "%-8s %5s %6s %6s %6s %6s  %5s %6s %6s"
	intervalWidth   = 65
	narrowColumns   = "%-8s %6s %6s %6s  %6s" // where the terminal has not that width
)

// intervalHead names the columns.
func intervalHead(several, narrow bool) string {
	if narrow {
		return fmt.Sprintf("%8s %-20s  %s\n", "", "KEPT, ms", "FRESH") +
			fmt.Sprintf(narrowColumns, "TIME", "P50", "P99", "MAX", "P50") + "\n"
	}
	head := fmt.Sprintf("%8s %-33s  %s\n", "", "KEPT CONNECTION, ms", "FRESH CONNECTIONS, ms") +
		fmt.Sprintf(intervalColumns, "TIME", "CALLS", "MIN", "P50", "P99", "MAX", "CALLS", "P50", "MAX")
	if several {
		head += " TARGET"
	}
	return head + "\n"
}

// line is one interval as redis-cli --latency-history would print it, with what that leaves out.
func (r probeRow) line(now time.Time, several, narrow bool) string {
	k, f := r.Phases[probe.Kept], r.Phases[probe.Fresh]
	before := ""
	if several && narrow {
		before, several = r.Address+"\n", false
	}
	s := fmt.Sprintf(intervalColumns, now.Format(time.TimeOnly), count(k.Calls), ms(k, k.MinNs), ms(k, k.P50Ns),
		ms(k, k.P99Ns), ms(k, k.MaxNs),
		count(f.Calls), ms(f, f.P50Ns), ms(f, f.MaxNs))
	if narrow {
		s = fmt.Sprintf(narrowColumns, now.Format(time.TimeOnly), ms(k, k.P50Ns), ms(k, k.P99Ns), ms(k, k.MaxNs),
			ms(f, f.P50Ns))
	}
	if several {
		s += " " + r.Address
	}
	if e := r.errorText(); e != "" {
		s += "  " + e
	}
	return before + strings.TrimRight(s, " ") + "\n"
}

// table prints the totals of a target: both kinds of connections, and under the fresh ones their phases.
func (r probeRow) table(w io.Writer, title string, gap bool, s layout.Style) error {
	var b strings.Builder
	if gap {
		b.WriteString("\n")
	}
	fmt.Fprintln(&b, title)
	b.Write(r.latencies(s))
	if len(r.Phases) == 0 {
		b.WriteString("no call came back\n")
	}
	if e := r.errorText(); e != "" {
		fmt.Fprintln(&b, e)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "not back at the end: %s\n", format.Count(r.Unfinished, "call"))
	}
	b.WriteString(r.missedText())
	for _, fact := range r.facts {
		fmt.Fprintln(&b, fact)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tableWidth is that of the columns of latencies.
const tableWidth = 72

// latencies is the table of latencies; where the terminal has not its width, each row is folded.
func (r probeRow) latencies(s layout.Style) []byte {
	head := []string{"ms", "CALLS", "MIN", "P50", "P99", "P99.9", "MAX"}
	rows := [][]string{}
	for _, name := range r.names {
		p, ok := r.Phases[name]
		if !ok {
			continue
		}
		label := "  " + name
		switch name {
		case probe.Kept, probe.Fresh:
			label = name + " connection"
		case figureCycle:
			label = name
		}
		rows = append(rows, []string{
			label, count(p.Calls), ms(p, p.MinNs), ms(p, p.P50Ns), ms(p, p.P99Ns), ms(p, p.P999Ns), ms(p, p.MaxNs),
		})
	}
	if s.Width < tableWidth {
		page := layout.New(s)
		head[0] = ""
		page.Folded(head, rows)
		return page.Bytes()
	}
	var b bytes.Buffer
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintf(&b, "%-18s", row[0])
		for _, cell := range row[1:] {
			fmt.Fprintf(&b, " %8s", cell)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// missedText says what of the schedule was not kept, and why.
func (r probeRow) missedText() string {
	var b strings.Builder
	if n := r.Missed[probe.MissedWaiting]; n > 0 {
		fmt.Fprintf(&b, "not sent while others waited: %s; their wait until then counts\n", format.Count(n, "call"))
	}
	if n := r.Missed[probe.MissedConnections]; n > 0 {
		fmt.Fprintf(&b, "not made while others waited: %s; no time of theirs counts\n", format.Count(n,
			"fresh connection"))
	}
	if n := r.Missed[probe.MissedOwn]; n > 0 || r.Late > 0 {
		fmt.Fprintf(&b, "slowpath itself did not run in time: %s up to %s late, %d not sent;\n"+
			"no time of this counts\n", format.Count(r.Late, "call"), format.Duration(r.LateMaxNs), n)
	}
	return b.String()
}

// errorText lists the errors, the most frequent first.
func (r probeRow) errorText() string {
	var names []string
	for name := range r.Errors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if n := r.Errors[b] - r.Errors[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d x %s", r.Errors[name], layout.OneLine(name)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "errors: " + strings.Join(parts, "; ")
}

// liveLine is the line that a terminal shows while the probe runs. Where several targets do not fit, each has fewer
// numbers.
func liveLine(ts []*tally, since time.Duration, width int) string {
	var full, short []string
	for _, t := range ts {
		name := t.address + " "
		if len(ts) == 1 {
			name = ""
		}
		t.mu.Lock()
		h := t.whole.histograms[probe.Kept]
		s := phaseStats{Calls: h.TotalCount()}
		p50, p99, most := ms(s, h.ValueAtQuantile(50)), ms(s, h.ValueAtQuantile(99)), ms(s, h.Max())
		full = append(full, fmt.Sprintf("%snow %s, p50 %s, p99 %s, max %s ms, %s", name,
			ms(s, int64(t.last)), p50, p99, most, format.Count(s.Calls, "call")))
		short = append(short, fmt.Sprintf("%sp99 %s, max %s", name, p99, most))
		t.mu.Unlock()
	}
	elapsed := fmt.Sprintf("%.0f s: ", since.Seconds())
	if line := elapsed + strings.Join(full, " | "); layout.Width(line) <= width {
		return line
	}
	return elapsed + strings.Join(short, " | ")
}

func count(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// ms prints nanoseconds as milliseconds, "-" where there were no calls.
func ms(of phaseStats, ns int64) string {
	if of.Calls == 0 {
		return "-"
	}
	return format.Milliseconds(ns)
}
