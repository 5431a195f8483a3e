package report

import (
	"fmt"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// maxProcesses bounds the processes whose CPU time is shown.
const maxProcesses = 6

// onCPU shows what processes used the CPU for.
func (p *page) onCPU(all []verdict.OnCPU) {
	if len(all) == 0 {
		return
	}
	p.Section("On the CPU while calls were slow, and otherwise")
	for _, o := range all[:min(len(all), maxProcesses)] {
		said, heading := onCPUSaid(o)
		p.Paragraph("  ", "  ", said, layout.None)
		if heading != "" {
			p.Paragraph("    ", "    ", heading, layout.Dim)
		}
		for _, f := range o.Functions {
			p.Paragraph("    ", "      ", functionSaid(f), layout.None)
		}
	}
	if n := len(all) - maxProcesses; n > 0 {
		p.More("  ", n)
	}
}

// onCPUSaid says how much of a CPU a process used, and what the list of its functions is.
func onCPUSaid(o verdict.OnCPU) (said, heading string) {
	who := o.Name
	if o.Node != "" {
		who += " (" + o.Node + ")"
	}
	if o.Slow.Samples+o.Rest.Samples == 0 {
		return who + " was not seen on the CPU", ""
	}
	said = fmt.Sprintf("%s used %s of a CPU; no call was slow", who, ofTime(o.Rest))
	if o.Slow.Ns > 0 {
		said = fmt.Sprintf("%s used %s of a CPU in the %s in which calls were slow, %s in the rest", who,
			ofTime(o.Slow), format.Duration(o.Slow.Ns), ofTime(o.Rest))
	}
	if o.Differs {
		heading = "Then it spent more of its time than otherwise in (share of its samples, with what it called):"
	} else if len(o.Functions) > 0 {
		heading = "It was mostly in (share of its samples, with what it called); no function differs while calls " +
			"were slow:"
	}
	return said, heading
}

func functionSaid(f verdict.OnCPUFunction) string {
	return fmt.Sprintf("%s slow, %s otherwise: %s", format.WholePercent(f.Slow), format.WholePercent(f.Rest), f.Name)
}

// ofTime is what a process used of one CPU in a part of the watch.
func ofTime(s verdict.Side) string {
	return format.WholePercent(float64(s.CPUNs) / float64(max(s.Ns, 1)))
}
