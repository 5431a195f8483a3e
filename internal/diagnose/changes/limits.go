package changes

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// limits adds what was changed at the cgroups of the server, and at the CPUs on which it may run.
func (h *history) limits() {
	n := h.n
	for _, subject := range n.Rec.Subjects(recording.SourceHost, recording.CgroupPrefix) {
		path, name := strings.TrimPrefix(subject, recording.CgroupPrefix), "cpu quota"
		if !hosts.Under(n, path) {
			name = "client cpu quota" // only the cgroups of its clients are watched as well
		}
		period := n.CgroupSeries(path, series.CgroupPeriod)
		h.steps(n.CgroupSeries(path, series.CgroupQuota), name, "the CPU quota of "+format.Name(path)+" is",
			func(quota float64, atNs int64) string {
				per, _ := period.At(atNs)
				if quota <= 0 || per <= 0 {
					return "none"
				}
				return fmt.Sprintf("%.2f cores", quota/per)
			})
		h.steps(n.CgroupSeries(path, series.CgroupMemoryLimit), "memory limit",
			"the memory limit of "+format.Name(path)+" is", func(bytes float64, _ int64) string {
				if bytes < 0 {
					return "none"
				}
				return format.Bytes(int64(bytes))
			})
	}
	h.steps(n.Series(series.CPUsAllowed), "cpus", "CPUs that the server may run on:",
		func(cpus float64, _ int64) string { return fmt.Sprintf("%.0f", cpus) })
}

// steps adds each change of a value.
func (h *history) steps(s recording.Series, name, what string, text func(value float64, atNs int64) string) {
	kind := Limit
	if name == "cpus" {
		kind = CPUs
	}
	for i := 1; i < len(s); i++ {
		from, to := s[i-1], s[i]
		if from.Value == to.Value {
			continue
		}
		h.add(Change{
			Kind: kind, Names: []string{name}, Source: recording.SourceHost,
			Span: facts.Span{FromNs: max(from.TimeNs, to.TimeNs-facts.PollIntervalNs), ToNs: to.TimeNs},
			Text: changed(what, text(to.Value, to.TimeNs), text(from.Value, from.TimeNs)),
		})
	}
}

// slotMaps are changes of who owns the slots of a cluster, as the first node reports them that reports any.
func slotMaps(c *facts.Case) (out []Change) {
	for _, n := range c.Nodes {
		for i := 1; i < len(nodes.ClusterViews(n)); i++ {
			before, now := nodes.ClusterViews(n)[i-1], nodes.ClusterViews(n)[i]
			if moved := moved(before, now); moved > 0 {
				out = append(out, Change{
					Kind: Map, Names: []string{"map"}, Source: recording.SourceServer,
					Span: nodes.PollBefore(n, facts.Span{FromNs: before.TimeNs, ToNs: now.TimeNs}),
					Text: format.Count(moved, "slot") + " of the cluster got another owner",
				})
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// moved is how many slots have another owner in the second map.
func moved(before, now nodes.ClusterView) (slots int) {
	from, to := before.Owners(), now.Owners()
	for slot := range from {
		if a, b := from[slot], to[slot]; a >= 0 && b >= 0 && before.Nodes[a].ID != now.Nodes[b].ID {
			slots++
		}
	}
	return slots
}
