package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// JSON writes a document, which errors call what: indented, with a newline at the end. It fails on a number or a time
// that JSON cannot express.
func JSON(w io.Writer, what string, v any) error {
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

// JSONLine writes a document as one line, for streams of documents, which errors call what.
func JSONLine(w io.Writer, what string, v any) error {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(v); err != nil {
		return fmt.Errorf("encoding %s: %w", what, err)
	}
	if _, err := w.Write(harmless(buf.Bytes())); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

// harmless escapes what encoding/json leaves as it is and a terminal would obey: DEL, the C1 controls, and characters
// that reverse the direction of writing. They are only inside strings, so the value stays the same.
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
