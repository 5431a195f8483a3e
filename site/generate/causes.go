package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"slowpath/internal/report"
)

// layers are those of the catalogue, as headings.
var layers = []struct{ id, title string }{
	{"server", "The server"},
	{"server-host", "The server's host"},
	{"persistence", "Persistence"},
	{"network", "The network and proxies"},
	{"client", "Clients"},
	{"client-host", "The client's host"},
	{"limits", "Limits"},
}

// writeCauses writes a page for each cause, and a list of them by layer.
func writeCauses(dir string, causes []report.CauseText, verdicts map[string]verdict) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range causes {
		v, recorded := verdicts[c.ID]
		text := causePage(c, v, recorded)
		if err := os.WriteFile(filepath.Join(dir, c.ID+".md"), text, 0o644); err != nil {
			return err
		}
	}
	list, err := causeList(causes, verdicts)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.md"), list, 0o644)
}

// causeList has all causes. It fails where a cause is of a layer that it does not know.
func causeList(causes []report.CauseText, verdicts map[string]verdict) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Causes\n\nThe %d causes that slowpath tells apart, and for %d of them what it says of a "+
		"recording in which the fault was made on purpose, on a real server. `slowpath explain CAUSE` prints the same "+
		"text.\n", len(causes), len(verdicts))
	listed := 0
	for _, l := range layers {
		fmt.Fprintf(&b, "\n## %s\n\n", l.title)
		for _, c := range causes {
			if c.Layer == l.id {
				fmt.Fprintf(&b, "- [%s](%s.md) — %s\n", c.ID, c.ID, markdown(c.Title))
				listed++
			}
		}
	}
	if listed != len(causes) {
		return nil, fmt.Errorf("%d of %d causes are of no layer that is listed in site/generate/causes.go",
			len(causes)-listed, len(causes))
	}
	return b.Bytes(), nil
}

// causePage is what is known of a cause, and a verdict that found it.
func causePage(c report.CauseText, v verdict, recorded bool) []byte {
	var b bytes.Buffer
	section := func(title string, lines ...string) {
		if len(lines) > 0 && lines[0] != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, strings.Join(lines, "\n"))
		}
	}
	fmt.Fprintf(&b, "---\ntitle: %s\n---\n\n# %s\n\n**%s.** %s\n", c.ID, c.ID, markdown(c.Title), markdown(c.Mechanism))
	section("How it shows", evidence(c.Evidence)...)
	section("What rules it out", markdown(c.RuledOut))
	var like []string
	for _, l := range c.LookAlikes {
		like = append(like, fmt.Sprintf("- [%s](%s.md): %s", l.ID, l.ID, markdown(l.How)))
	}
	section("What looks like it", like...)
	section("Can be a consequence of", links(c.ConsequenceOf)...)
	section("What ends it", append([]string{markdown(c.Fix)}, spaced(c.Options)...)...)
	if recorded {
		section("A verdict", ofVerdict(c.ID, v))
	} else {
		section("A verdict", "There is no recording of this cause: the lab has no scenario that makes it, or one that "+
			"is too large to be kept.")
	}
	if len(c.Scenarios) > 0 {
		section("Make it", "On a test machine, with a real server:\n", "```text",
			"slowpath lab run "+c.Scenarios[0], "```")
	}
	section("Sources", addresses(c.See)...)
	return b.Bytes()
}

// ofVerdict shows the text as it is; nothing of a recording is Markdown or HTML.
func ofVerdict(id string, v verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "What `slowpath doctor` says of a recording of the scenario `%s`", v.scenario)
	if !v.first {
		fmt.Fprintf(&b, ", in which it is not the first finding, but one of: %s", strings.Join(v.causes, ", "))
	}
	fmt.Fprintf(&b, ". [The same as a page](../reports/%s.html) that `doctor --html` writes.\n\n", id)
	b.WriteString(preformatted(v.text))
	return b.String()
}

func preformatted(text string) string {
	return "<pre class=\"verdict\"><code>" + html.EscapeString(strings.TrimRight(text, "\n")) + "</code></pre>"
}

func evidence(e report.Evidence) (list []string) {
	for _, tier := range []struct{ from, what string }{
		{"A connection", e.Connection}, {"The host's files", e.Host}, {"The kernel", e.Kernel},
	} {
		what := tier.what
		if what == "" {
			what = "nothing"
		}
		list = append(list, fmt.Sprintf("- *%s:* %s", tier.from, markdown(what)))
	}
	return list
}

func links(ids []string) (list []string) {
	for _, id := range ids {
		list = append(list, fmt.Sprintf("- [%s](%s.md)", id, id))
	}
	return list
}

func addresses(list []string) (out []string) {
	for _, a := range list {
		out = append(out, "- <"+a+">")
	}
	return out
}

// spaced is a list below a paragraph.
func spaced(options []string) (list []string) {
	for i, o := range options {
		if i == 0 {
			list = append(list, "")
		}
		list = append(list, "- "+markdown(o))
	}
	return list
}

// markdown writes a text so that all of its characters are shown.
func markdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", ">", "&gt;", "&", "&amp;",
		"[", `\[`, "|", `\|`, "#", `\#`).Replace(text)
}
