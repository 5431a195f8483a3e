package changes

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// network adds changes of the host's network: those of one kind by one program once, the first.
func network(c *facts.Case) (out []Change) {
	seen := map[string]bool{}
	for _, e := range c.Rec.EventsOf(recording.SourceHost, recording.SubjectMachine, recording.KindNetworkChange) {
		d := recording.DetailOf[recording.NetworkChangeDetail](e)
		program, _, _ := strings.Cut(d.By, "[")
		if key := d.What + d.How + program; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		change := Change{
			Kind: Network, Span: facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs}, Names: []string{d.What},
			Source: recording.SourceHost, Text: "a " + d.What + " of the host was " + d.How,
		}
		if strings.HasSuffix(d.What, "s") {
			change.Text = d.What + " of the host were " + d.How
		}
		if d.By != "" {
			change.By = []string{d.By}
		}
		out = append(out, change)
	}
	return out
}

const (
	// packagesApart is how far apart the packages of one upgrade are, at most.
	// Bound: guess, a minute; the logs of package managers of many hosts would measure it.
	packagesApart = int64(60e9)
)

// packages adds upgrades of the host's packages, each with all that was installed or removed together.
func packages(c *facts.Case) (out []Change) {
	var all []recording.PackageDetail
	for _, e := range c.Rec.EventsOf(recording.SourceHost, recording.SubjectMachine, recording.KindPackage) {
		all = append(all, recording.DetailOf[recording.PackageDetail](e))
	}
	slices.SortStableFunc(all, func(a, b recording.PackageDetail) int { return cmp.Compare(a.AtNs, b.AtNs) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].AtNs-all[n-1].AtNs <= packagesApart {
			n++
		}
		var texts []string
		for _, d := range all[:min(n, degree.Listed)] {
			text := d.How + " of " + d.Name
			if d.To != "" {
				text += " (" + d.From + " to " + d.To + ")"
			}
			texts = append(texts, text)
		}
		text := strings.Join(texts, ", ")
		if more := n - len(texts); more > 0 {
			text += " and " + format.Count(more, "more package")
		}
		out = append(out, Change{
			Kind: Package, Span: facts.Span{FromNs: all[0].AtNs, ToNs: all[n-1].AtNs}, Names: []string{"package"},
			Source: recording.SourceHost, Text: text,
		})
		all = all[n:]
	}
	return out
}
