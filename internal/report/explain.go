package report

import (
	"cmp"
	_ "embed" // scenarios.tsv
	"io"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// CausesSchema is the schema of a list of causes.
const CausesSchema = "slowpath.causes/v1"

// Causes are causes as JSON: slowpath.causes/v1.
type Causes struct {
	Schema string      `json:"schema"`
	Causes []CauseText `json:"causes"`
}

// CauseText is what is known of a cause, whatever a recording shows.
type CauseText struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Layer     string `json:"layer"`
	Mechanism string `json:"mechanism"`
	// Evidence is what it is judged by.
	Evidence   Evidence          `json:"evidence"`
	RuledOut   string            `json:"ruled_out"`
	LookAlikes []cause.LookAlike `json:"look_alikes"`
	// ConsequenceOf are the ids of causes that can produce it.
	ConsequenceOf []string `json:"consequence_of"`
	Fix           string   `json:"fix"`
	// Options are what client libraries offer against it.
	Options []string `json:"options"`
	// Scenarios are those of the lab that make it: arguments of slowpath lab run.
	Scenarios []string `json:"incidents"`
	See       []string `json:"see"`
}

// Evidence is that of a cause, by what it takes to see it; empty for nothing.
type Evidence struct {
	Connection string `json:"connection"` // a connection to the server
	Host       string `json:"host"`       // and the files of the server's or the client's host
	Kernel     string `json:"kernel"`     // and the tap
}

// TextOf is what is known of a cause.
func TextOf(c cause.Cause) CauseText {
	t := CauseText{
		ID: c.ID, Title: c.Title, Layer: c.Layer, Mechanism: c.Mechanism,
		Evidence: Evidence{c.Needs.T0, c.Needs.T1, c.Needs.T2}, RuledOut: c.RuledOut,
		LookAlikes: list(c.LookAlikes), ConsequenceOf: list(c.Roots()), Fix: c.Remedy, Options: []string{},
		Scenarios: list(scenariosOf(c.ID)), See: list(c.See),
	}
	for _, topic := range c.Options {
		t.Options = append(t.Options, remedy.Texts(topic)...)
	}
	return t
}

// scenariosTable has a line for each scenario of the lab: the cause, a tab, and the scenario. make docs writes it.
//
//go:embed scenarios.tsv
var scenariosTable string

// scenariosOf are the scenarios that make a cause.
func scenariosOf(cause string) (ids []string) {
	for line := range strings.Lines(scenariosTable) {
		if id, of := strings.CutPrefix(line, cause+"\t"); of {
			ids = append(ids, strings.TrimSuffix(id, "\n"))
		}
	}
	return ids
}

// CausesJSON writes causes by the contract slowpath.causes/v1.
func CausesJSON(w io.Writer, causes []CauseText) error {
	return layout.JSON(w, "the causes", Causes{CausesSchema, list(causes)})
}

// Cause writes what is known of a cause.
func Cause(w io.Writer, c CauseText, s layout.Style) error {
	p := newPage(s)
	p.Paragraph("", "", c.ID+": "+c.Title, layout.Bold)
	p.Gap()
	p.Paragraph("", "", c.Mechanism, layout.None)
	p.Section("Seen by")
	for _, e := range [][2]string{
		{"a connection alone: ", cmp.Or(c.Evidence.Connection, "nothing")},
		{"with the host's files: ", cmp.Or(c.Evidence.Host, "nothing more")},
		{"with the tap: ", cmp.Or(c.Evidence.Kernel, "nothing more")},
	} {
		p.item(e[0] + e[1])
	}
	p.Section("Ruled out by")
	p.item(c.RuledOut)
	p.Section("Looks like")
	for _, l := range c.LookAlikes {
		p.item(l.ID + ": " + l.How)
	}
	if len(c.ConsequenceOf) > 0 {
		p.Section("Can be a consequence of")
		p.Facts("  ", c.ConsequenceOf, layout.None)
	}
	p.Section("Fix")
	p.Paragraph("  ", "  ", c.Fix, layout.None)
	if len(c.Options) > 0 {
		p.Section("In client libraries")
		for _, o := range c.Options {
			p.item(o)
		}
	}
	if len(c.Scenarios) > 0 {
		p.Section("To see it")
		for _, id := range c.Scenarios {
			p.Piece("  ", "slowpath lab run "+id, layout.Copied)
		}
	}
	p.Section("Sources")
	for _, page := range c.See {
		p.Piece("  ", page, layout.Blue)
	}
	return p.To(w, "the cause")
}

// item is one of a list.
func (p *page) item(text string) { p.Paragraph("  - ", "    ", text, layout.None) }

// layerTitles are the layers of causes, from the host of the server to the clients.
var layerTitles = []struct{ layer, title string }{
	{"server-host", "The server's host"},
	{"server", "The server"},
	{"persistence", "Its persistence"},
	{"limits", "Its limits"},
	{"network", "The network"},
	{"client-host", "The client's host"},
	{"client", "The client"},
}

// CauseList writes the ids and titles of causes, by layer.
func CauseList(w io.Writer, causes []CauseText, s layout.Style) error {
	p := newPage(s)
	p.Paragraph("", "", format.Count(len(causes), "cause")+
		" of slow calls. More on each: slowpath explain CAUSE", layout.None)
	width := 0
	for _, c := range causes {
		width = max(width, layout.Width(c.ID))
	}
	for _, l := range layerTitles {
		p.Section(l.title)
		for _, c := range causes {
			if c.Layer == l.layer {
				p.entry(c.ID, c.Title, width)
			}
		}
	}
	return p.To(w, "the causes")
}

// leastTexts is the least width of a column of texts beside one of names: below it texts go below their names.
const leastTexts = 30

// entry is a name and what it means, in two columns where the terminal has room for them.
func (p *page) entry(name, text string, width int) {
	lead := layout.Pad("", width+4)
	if p.Style.Width-layout.Width(lead) >= leastTexts {
		p.Paragraph("  "+layout.Pad(name, width)+"  ", lead, text, layout.None)
		return
	}
	p.Line("  " + name)
	p.Paragraph("    ", "    ", text, layout.None)
}
