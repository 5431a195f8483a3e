package probing

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

const (
	linesPerHead = 20 // on a terminal the head comes again after so many lines
	dueWidth     = 12 // 15:04:05.000
	leastColumn  = 7
)

func columnWidth(name string) int { return max(leastColumn, len(name)+1) }

// head names the columns.
func (c *cycles) head() string {
	first, second := fmt.Sprintf("%*s", dueWidth, ""), fmt.Sprintf("%-*s", dueWidth, "DUE")
	for i, name := range c.columns {
		if i == 0 {
			first += "  " + c.fresh + ", ms"
		}
		if c.beside > 0 && i == len(c.columns)-c.beside {
			first = layout.Pad(first, layout.Width(second)) + "  BESIDE, ms"
		}
		second += fmt.Sprintf("%*s", columnWidth(name), strings.ToUpper(name))
	}
	if len(c.hops) > 1 {
		second += "  TARGET"
	}
	return first + "\n" + second + "\n"
}

// line is one cycle.
func (c *cycles) line(r cycleRow) string {
	values := map[string]int64{figureWait: r.WaitNs, figureTotal: r.Ns, figureOwn: r.OwnNs}
	for _, s := range r.Steps {
		values[s.Step] = s.Ns
	}
	for name, ns := range r.Beside {
		values[name] = ns
	}
	for cpu, ns := range r.Late {
		values["cpu"+cpu] = ns
	}
	var b strings.Builder
	b.WriteString(r.Due.Local().Format("15:04:05.000"))
	for _, name := range c.columns {
		value := "-"
		if ns, ok := values[name]; ok {
			value = format.Milliseconds(ns)
		}
		fmt.Fprintf(&b, "%*s", columnWidth(name), value)
	}
	if len(c.hops) > 1 {
		b.WriteString("  " + r.Address)
	}
	b.WriteString(c.marks(r))
	return b.String() + "\n"
}

// marks say what is unusual about a cycle.
func (c *cycles) marks(r cycleRow) string {
	var marks []string
	if r.Slow != "" {
		marks = append(marks, "slow: "+r.Slow)
	}
	if r.ownLate {
		marks = append(marks, fmt.Sprintf("slowpath's CPU %d late", c.flags.Each.Pin[0]))
	}
	if r.Error != "" {
		failed := slices.IndexFunc(r.Steps, func(s cycleStep) bool { return s.Error == r.Error })
		if failed >= 0 {
			marks = append(marks, r.Steps[failed].Step+": "+layout.OneLine(r.Error))
		} else {
			marks = append(marks, layout.OneLine(r.Error))
		}
	}
	if len(marks) == 0 {
		return ""
	}
	return "  " + strings.Join(marks, ", ")
}
