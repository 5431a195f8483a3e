package results

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// Summary is what a pipeline shows of loads.
type Summary struct {
	Target  string
	Text    string // how fast it went
	Seconds float64
	Figures [][2]string // name and value
	Checks  []experiment.Check
}

// SummaryOfLoad is the summary of one load.
func SummaryOfLoad(r *bench.Result) Summary {
	s := Summary{Target: r.Target.Address, Seconds: r.Seconds, Checks: r.Checks}
	s.Text = fmt.Sprintf("%s requests per second, %s in %s.", format.Thousands(r.RequestsPerSecond),
		format.Count(r.Requests, "request"), format.Duration(int64(r.Seconds*1e9)))
	for _, f := range []struct {
		name string
		ns   int64
	}{{"p50", r.Latency.P50Ns}, {"p99", r.Latency.P99Ns}, {"p99.9", r.Latency.P999Ns}, {"max", r.Latency.MaxNs}} {
		s.Figures = append(s.Figures, [2]string{f.name, format.Duration(f.ns)})
	}
	failed := int64(0)
	for _, n := range r.Errors {
		failed += n
	}
	s.Figures = append(s.Figures, [2]string{"errors", format.Thousands(failed)})
	return s
}

// SummaryOfRepeats is the summary of repeated loads, and of what differs from a baseline.
func SummaryOfRepeats(r *experiment.Repeats) Summary {
	s := Summary{Text: r.Summary, Checks: append(r.Checks, r.Comparison.Checks()...)}
	if t, ok := r.Target.(bench.Target); ok {
		s.Target = t.Address
	}
	for _, run := range r.Runs {
		s.Seconds += run.Seconds
	}
	for _, m := range r.Metrics {
		s.Figures = append(s.Figures, [2]string{metricName(m.Name), amount(m.Name, &m.Median.Value)})
	}
	return s
}

// SummaryFormats write a summary, by the end of a file's name.
var SummaryFormats = map[string]func(io.Writer, Summary) error{".md": markdown, ".xml": junit}

// outcomeWords are the outcomes of checks for people.
var outcomeWords = map[string]string{
	experiment.Holds: "passed", experiment.Fails: "failed", experiment.Untested: "cannot be told",
}

func markdown(w io.Writer, s Summary) error {
	var b strings.Builder
	title := "slowpath bench " + s.Target
	if len(s.Checks) > 0 {
		title += ": " + outcomeWords[experiment.Outcome(s.Checks)]
	}
	fmt.Fprintf(&b, "### %s\n\n%s\n", inMarkdown(title), inMarkdown(s.Text))
	if len(s.Checks) > 0 {
		b.WriteString("\n| fails if | outcome | |\n|---|---|---|\n")
	}
	for _, c := range s.Checks {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", inMarkdown(c.FailIf), outcomeWords[c.Outcome], inMarkdown(c.Why))
	}
	b.WriteString("\n| figure | |\n|---|---|\n")
	for _, f := range s.Figures {
		fmt.Fprintf(&b, "| %s | %s |\n", f[0], f[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inMarkdown is a text that has no markup and stays in its cell, whoever wrote it.
func inMarkdown(text string) string {
	return strings.NewReplacer("|", `\|`, "`", "'", "[", `\[`, "*", `\*`, "_", `\_`).
		Replace(html.EscapeString(layout.OneLine(text)))
}

// The documents of JUnit, of which pipelines show failures.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      string      `xml:"system-out"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"` // it cannot be told
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

func junit(w io.Writer, s Summary) error {
	suite := junitSuite{
		Name: layout.OneLine("slowpath bench " + s.Target), Tests: len(s.Checks),
		Time: fmt.Sprintf("%.3f", s.Seconds), Out: layout.OneLine(s.Text),
	}
	for _, c := range s.Checks {
		one := junitCase{Name: layout.OneLine(c.FailIf), Class: suite.Name}
		message := &junitMessage{layout.OneLine(c.Why)}
		switch c.Outcome {
		case experiment.Fails:
			one.Failure = message
			suite.Failures++
		case experiment.Untested:
			one.Error = message
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// checks prints the bounds of a load and what it shows of them.
func (p *page) checks(checks []experiment.Check) {
	colours := map[string]layout.Paint{
		experiment.Holds: layout.Calm, experiment.Fails: layout.Alarm, experiment.Untested: layout.Doubt,
	}
	for i, c := range checks {
		if i == 0 {
			p.Gap()
		}
		text := fmt.Sprintf("fails if %s: %s", c.FailIf, outcomeWords[c.Outcome])
		if c.Why != "" {
			text += ", " + c.Why
		}
		p.Paragraph("", "  ", text, colours[c.Outcome])
	}
}
