package report

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

type findingPage struct {
	ID, Title, Facts, Because string
	By                        []string
	Number                    int
	Fix                       []stepPage
	For, Against, Before      factsPage
	See                       []linkPage
}

// stepPage is a line of a fix: a command, which has a button that copies it, or a sentence. A remark is less important.
type stepPage struct {
	Text            string
	Command, Remark bool
}

// factsPage is a list that can be folded away.
type factsPage struct {
	Title string
	Facts []string
	Open  bool
}

type linkPage struct{ URL, Text string }

func findingsView(fs []cause.Finding) (out []findingPage) {
	for i, f := range fs {
		v := findingPage{
			ID: fmt.Sprintf("cause-%d", i+1), Number: i + 1, Title: plain(f.Title), Facts: joinFacts(claim(f)),
		}
		if f.Because != "" {
			v.Because = plain(rootOf(fs, f.Because))
		}
		for _, c := range f.Culprits {
			v.By = append(v.By, plain(c.Text))
		}
		v.Fix = fixView(f.FixSteps)
		v.For = factsView("Proof", f.Evidence, i == 0)
		v.Against = factsView("Against", f.Against, true)
		v.Before = factsView("Changed before", changesBefore(f.Changes), true)
		for _, u := range f.See {
			link := linkPage{Text: plain(u)}
			if strings.HasPrefix(u, "https://") {
				link.URL = u
			}
			v.See = append(v.See, link)
		}
		out = append(out, v)
	}
	return out
}

// fixView are the lines of a fix: sentences, commands to copy, and remarks.
func fixView(steps []remedy.Step) (out []stepPage) {
	for i, s := range steps {
		text := s.Sentence()
		if s.Or && i > 0 {
			text = "Or: " + text
		}
		out = append(out, stepPage{Text: fmt.Sprintf("%d. %s", i+1, bounded(text))})
		if s.Command != "" {
			out = append(out, stepPage{Text: bounded(s.Command), Command: s.Complete()})
		}
		if s.Kind == remedy.Command && s.Undo != "" {
			out = append(out, stepPage{Text: "To undo it:", Remark: true}, stepPage{bounded(s.Undo), true, true})
		}
		out = append(out, stepPage{Text: joinFacts(remarks(s)), Remark: true})
	}
	return out
}

// bounded is a text without control characters. Commands keep their spaces as they are.
func bounded(s string) string { return layout.Bound(layout.OneLine(s), layout.MaxText) }

// firstSteps are the first step of a fix, and the first that is proven, for the first screen.
func firstSteps(steps []remedy.Step) (out []stepPage) {
	if len(steps) == 0 {
		return nil
	}
	out = stepView("", steps[0])
	if i := provenInstead(steps); i > 0 {
		and := "And: "
		if steps[i].Or {
			and = "Or: "
		}
		out = append(out, stepView(and, steps[i])...)
	}
	return out
}

// stepView is a step with whether the lab has proven it.
func stepView(before string, s remedy.Step) []stepPage {
	out := []stepPage{{Text: before + bounded(s.Sentence()) + " (" + tried(s.Proof) + ")"}}
	if s.Command != "" {
		out = append(out, stepPage{Text: bounded(s.Command), Command: s.Complete()})
	}
	return out
}

func factsView(title string, facts []cause.Evidence, open bool) factsPage {
	v := factsPage{Title: fmt.Sprintf("%s: %s", title, format.Count(len(facts), "fact")), Open: open}
	for _, e := range facts {
		v.Facts = append(v.Facts, plain(said(e)))
	}
	return v
}
