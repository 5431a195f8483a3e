package scenario

import (
	"fmt"
	"io"
	"strings"

	"slowpath/internal/report/layout"
)

// leastTexts is the least width of texts beside names: below it they go below their names.
const leastTexts = 30

// WriteList writes the catalogue: each scenario with what is done, and its truth where its name is another. Long texts
// go on below themselves.
func WriteList(w io.Writer, width int) error {
	names := 0
	for _, i := range Catalogue() {
		names = max(names, len(i.ID))
	}
	indent := names + 2
	if width < indent+leastTexts {
		names, indent = 0, 2
	}
	var b strings.Builder
	for _, i := range Catalogue() {
		text := i.Title
		if i.ID != i.Cause && i.Cause != HealthyCause {
			text += " (truth: " + i.Cause + ")"
		}
		text = strings.ReplaceAll(layout.Fill(text, width-indent), "\n", "\n"+strings.Repeat(" ", indent))
		if names == 0 {
			fmt.Fprintf(&b, "%s\n  %s\n", i.ID, text)
			continue
		}
		fmt.Fprintf(&b, "%-*s  %s\n", names, i.ID, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
