package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// answerText bounds a text of the answer, in bytes: about two lines. All of it is in the findings.
const answerText = 160

// proofBesideWho bounds the proof where a line about who did it follows, so that the fix is in the first ten lines.
const proofBesideWho = 120

// alsoShare is the share of the lost time from which a further cause is in the answer.
const alsoShare = 0.1

// Answer writes what follows the summary in Text, for who shows that and the numbers elsewhere: is it proven, and what
// do I type.
func Answer(w io.Writer, d verdict.Diagnosis, s layout.Style) error {
	p := newPage(s)
	p.answer(d)
	return p.To(w, "the answer")
}

// FirstStep writes the best step of the fix of the first finding, nothing where there is none.
func FirstStep(w io.Writer, d verdict.Diagnosis, s layout.Style) error {
	p := newPage(s)
	if len(d.Findings) > 0 && len(d.Findings[0].FixSteps) > 0 {
		p.step("fix:   ", d.Findings[0].FixSteps[0])
	}
	return p.To(w, "the fix")
}

// answer is what somebody reads who reads ten lines: is it proven, and what do I type. The headline before it says what
// happened.
func (p *page) answer(d verdict.Diagnosis) {
	if len(d.Findings) == 0 {
		p.next(d)
		return
	}
	f := d.Findings[0]
	most := answerText
	if len(f.Culprits) > 0 {
		most = proofBesideWho
	}
	if sure := proofOf(f); sure != "" {
		p.labelled("proof: ", cutAt(sure, most))
	}
	if len(f.Culprits) > 0 {
		p.labelled("by:    ", f.Culprits[0].Text)
	}
	if len(f.FixSteps) > 0 {
		p.step("fix:   ", f.FixSteps[0])
	}
	if i := provenInstead(f.FixSteps); i > 0 {
		p.step(provenLabel(f.FixSteps[i], i), f.FixSteps[i])
	}
	if i := slices.IndexFunc(f.Changes, changes.Cited.Made); i >= 0 {
		p.labelled("changed before: ", f.Changes[i].Sentence())
	}
	for i, o := range d.Findings[1:] {
		if o.Because == "" && o.ExcessShare >= alsoShare {
			share := format.Percent(o.ExcessShare)
			p.labelled("also:  ", fmt.Sprintf("%d. %s (%s of the lost time)", i+2, o.Title, share))
		}
	}
}

// labelled is a paragraph that begins with a label.
func (p *page) labelled(label, text string) {
	p.Paragraph(label, layout.Pad("", len(label)), brief(text), layout.None)
}

func brief(text string) string { return cutAt(text, answerText) }

// cutAt is a text of at most so many bytes, cut between words.
func cutAt(text string, most int) string {
	short := layout.Bound(text, most)
	if end := strings.LastIndex(short, " "); short != text && end > 0 {
		return short[:end] + " …"
	}
	return short
}

// proofOf is how sure a finding is, and its first evidence.
func proofOf(f cause.Finding) string {
	if len(f.Evidence) == 0 {
		return ""
	}
	return fmt.Sprintf("%s sure, %s: %s", format.Percent(f.Confidence), gradeText[f.Grade],
		said(cause.Evidence{Text: f.Evidence[0].Text}))
}

// step is a step of the answer, with whether the lab has proven it.
func (p *page) step(label string, s remedy.Step) {
	text := brief(s.Sentence()) + " (" + tried(s.Proof) + ")"
	if s.Complete() {
		text += ":"
	}
	p.Paragraph(label, layout.Pad("", len(label)), text, layout.None)
	if s.Command == "" {
		return
	}
	paint := layout.Copied
	if !s.Complete() {
		paint = layout.None
	}
	p.Piece(layout.Pad("", len(label)), s.Command, paint)
}

// provenInstead is the index of the first step that the lab has proven, where the first of all is not; 0 where that is
// proven, or nothing is. Settings of a library are left out: which of several is in use is not known.
func provenInstead(steps []remedy.Step) int {
	for i, s := range steps {
		if s.Proof != nil && s.Proof.Proven && (i == 0 || s.Library == "") {
			return i
		}
	}
	return 0
}

// provenLabel is how the report calls that step: instead of the one before it, or besides.
func provenLabel(s remedy.Step, i int) string {
	if s.Or {
		return fmt.Sprintf("or:    %d. ", i+1)
	}
	return fmt.Sprintf("and:   %d. ", i+1)
}

// next says what would tell more, where no cause was found for slow calls.
func (p *page) next(d verdict.Diagnosis) {
	if d.Verdict != verdict.Inconclusive {
		return
	}
	for _, b := range d.BlindSpots {
		if b.Enable != "" {
			p.labelled("next:  ", fmt.Sprintf("to see %s: %s", b.What, b.Enable))
			return
		}
	}
}
