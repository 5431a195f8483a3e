package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/load/bench"
)

// JSON writes a diagnosis by the contract slowpath.diagnosis/v1: indented, with a newline at the end, lists never null.
// It fails on a number or a time that JSON cannot express.
func JSON(w io.Writer, d verdict.Diagnosis) error { return document(w, "the diagnosis", listed(d)) }

// LoadJSON writes the result of a load by the contract slowpath.bench/v1, in the same form.
func LoadJSON(w io.Writer, r *bench.Result) error { return document(w, "the result", r) }

func document(w io.Writer, what string, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // a fix is to be copied: "echo max > …", not "echo max \u003e …"
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding %s: %w", what, err)
	}
	if _, err := w.Write(harmless(buf.Bytes())); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

// harmless escapes what encoding/json leaves as it is and a terminal would obey: DEL, the C1 controls, and characters
// that reverse the direction of writing. They stand only inside strings, so the value stays the same.
func harmless(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for _, r := range string(doc) {
		if r != 0x7f && (r < 0x80 || r > 0x9f) && !unicode.Is(unicode.Cf, r) {
			out = append(out, string(r)...)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

// listed gives a diagnosis in which absent lists are empty ones, without changing d.
func listed(d verdict.Diagnosis) verdict.Diagnosis {
	d.Target.Nodes = list(d.Target.Nodes)
	d.Sources = list(d.Sources)
	d.Account = list(d.Account)
	d.BlindSpots = list(d.BlindSpots)
	d.Cost = list(d.Cost)
	d.Findings = append([]cause.Finding{}, d.Findings...)
	for i, f := range d.Findings {
		f.Evidence, f.Against, f.Fix, f.See = list(f.Evidence), list(f.Against), list(f.Fix), list(f.See)
		d.Findings[i] = f
	}
	d.Worst = append([]verdict.Worst{}, d.Worst...)
	for i := range d.Worst {
		d.Worst[i].Segments = list(d.Worst[i].Segments)
	}
	return d
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
