package cause_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"slowpath/internal/diagnose/cause"
)

const goodDocument = `# Calls wait

Layer: server

## Mechanism

One thread serves
all clients.

## Evidence

- T0: SLOWLOG, while calls
  were slow
- T2: each wait

## Ruled out by

No entries in SLOWLOG

## Look-alikes

- ` + "`swap`" + `: there pages are on the disk,
  and come back late
- ` + "`fork-latency`" + `: there a child begins

## Remedy

Smaller keys.

## Sources

- https://redis.io/a
- https://redis.io/b
`

// TestDocument: a document is all the prose of its cause, with the lines of a text joined.
func TestDocument(t *testing.T) {
	t.Parallel()
	sources := []string{"https://redis.io/a", "https://redis.io/b"}
	want := cause.Cause{
		ID: "one-thread", Title: "Calls wait", Layer: "server", Mechanism: "One thread serves all clients.",
		Needs:    cause.Needs{T0: "SLOWLOG, while calls were slow", T2: "each wait"},
		RuledOut: "No entries in SLOWLOG",
		LookAlikes: []cause.LookAlike{
			{"swap", "there pages are on the disk, and come back late"}, {"fork-latency", "there a child begins"},
		},
		Remedy: "Smaller keys.", See: sources,
	}
	withoutSources, _, _ := strings.Cut(goodDocument, "\n## Sources")
	for name, c := range map[string]struct {
		text string
		see  []string
	}{
		"sources in the document": {goodDocument, nil},
		"sources in the code":     {withoutSources, sources},
	} {
		got, err := cause.Documented(fstest.MapFS{"one_thread.md": {Data: []byte(c.text)}},
			[]cause.Cause{{ID: "one-thread", See: c.see}})
		if err != nil || !reflect.DeepEqual(got, []cause.Cause{want}) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
}

// TestDocumentMistakes: each mistake is told with its file, its line and what belongs there.
func TestDocumentMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, text, want string }{
		"no title":          {"# Calls wait", "Calls wait", `:1: want "# ", have "Calls wait"`},
		"no layer":          {"Layer: server\n\n", "", `:3: want "Layer: ", have "## Mechanism"`},
		"an empty layer":    {"Layer: server", "Layer:", `:3: want "Layer: ", have "Layer:"`},
		"no section":        {"## Remedy\n\nSmaller keys.\n\n", "", `:26: want "- ` + "`" + `" or "## Remedy", have "## Sources"`},
		"another section":   {"## Mechanism", "## Why", `:5: want "## Mechanism", have "## Why"`},
		"more in a heading": {"## Mechanism", "## Mechanism of it", `:5: want "## Mechanism" alone`},
		"an empty section":  {"No entries in SLOWLOG\n\n", "", `:18: want a paragraph, have "## Look-alikes"`},
		"a list":            {"No entries", "- No entries", `:18: want a paragraph, have "- No entries in SLOWLOG"`},
		"two paragraphs":    {"serves\n", "serves\n\n", `:9: want "## Evidence", have "all clients."`},
		"tiers out of order": {
			"- T0: SLOWLOG", "- T1: SLOWLOG, or\n- T0: SLOWLOG",
			`:13: want "- T2: " or "## Ruled out by", have "- T0: SLOWLOG, while calls were slow"`,
		},
		"no id":                {"`swap`", "swap", `:22: want "- ` + "`" + `" or "## Remedy", have "- swap: there pages`},
		"no colon after an id": {"`swap`:", "`swap`", ":22: want \"- `ID`: how they are told apart\""},
		"an item that is not indented": {
			"  were slow", "were slow", ":13: want one space between words, none at the end, and 2 at the begin",
		},
		"an indented paragraph": {
			"all clients", "  all clients", ":8: want one space between words, none at the end, and 0 at the begin",
		},
		"two spaces":         {"No entries", "No  entries", ":18: want one space between words"},
		"a space at the end": {"Smaller keys.", "Smaller keys. ", ":28: want one space between words"},
		"a carriage return":  {"Smaller keys.", "Smaller keys.\r", ":28: want one space between words"},
		"text after the end": {"redis.io/b\n", "redis.io/b\n\n## Notes\n", `:35: want "- " or the end, have "## Notes"`},
		"sources are missing": {
			"\n## Sources\n\n- https://redis.io/a\n- https://redis.io/b\n", "", `:28: want "## Sources", have the end`,
		},
		"nothing in the file": {goodDocument, "", `:0: want "# ", have the end`},
	} {
		if !strings.Contains(goodDocument, c.old) {
			t.Errorf("%s: the document has no %q", name, c.old)
		}
		text := strings.Replace(goodDocument, c.old, c.text, 1)
		files := fstest.MapFS{"one_thread.md": {Data: []byte(text)}}
		_, err := cause.Documented(files, []cause.Cause{{ID: "one-thread"}})
		if err == nil || !strings.HasPrefix(err.Error(), "cause/one_thread.md"+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	files := fstest.MapFS{"one_thread.md": {Data: []byte(goodDocument)}}
	_, err := cause.Documented(files, []cause.Cause{{ID: "one-thread", See: []string{"https://redis.io/a"}}})
	if err == nil || err.Error() != `cause/one_thread.md:30: want the end, have "## Sources"` {
		t.Errorf("sources in both: %v", err)
	}
	_, err = cause.Documented(files, []cause.Cause{{ID: "one-thread"}, {ID: "two-threads"}})
	if err == nil || err.Error() != "the document of two-threads: open two_threads.md: file does not exist" {
		t.Errorf("a cause without a document: %v", err)
	}
	_, err = cause.Documented(files, nil)
	if err == nil || err.Error() != "no cause has the document cause/one_thread.md" {
		t.Errorf("a document without a cause: %v", err)
	}
}
