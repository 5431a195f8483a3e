package cause

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// documents are the prose of the causes: for each a Markdown file beside its Go file.
//
//go:embed *.md
var documents embed.FS

// documented gives causes their prose. Each has a document, and each document a cause.
func documented(files fs.FS, causes []Cause) ([]Cause, error) {
	names, _ := fs.Glob(files, "*.md") // the pattern is one
	for i := range causes {
		name := strings.ReplaceAll(causes[i].ID, "-", "_") + ".md"
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("the document of %s: %w", causes[i].ID, err)
		}
		if err := causes[i].read(name, string(text)); err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("no cause has the document cause/%s", names[0])
	}
	return causes, nil
}

// read reads the document of a cause: all sections in this order, with Sources unless the code has them.
func (c *Cause) read(name, text string) error {
	d := &document{name: name}
	d.split(text)
	c.Title = d.next("# ")
	c.Layer = d.next("Layer: ")
	c.Mechanism = d.paragraph("Mechanism")
	d.section("Evidence")
	c.Needs.T0, _ = d.optional("- T0: ")
	c.Needs.T1, _ = d.optional("- T1: ")
	c.Needs.T2, _ = d.optional("- T2: ")
	c.RuledOut = d.paragraph("Ruled out by")
	d.section("Look-alikes")
	for item, ok := d.optional("- `"); ok; item, ok = d.optional("- `") {
		id, how, ok := strings.Cut(item, "`: ")
		if !ok {
			d.fail("want \"- `ID`: how they are told apart\"")
		}
		c.LookAlikes = append(c.LookAlikes, LookAlike{id, how})
	}
	c.Remedy = d.paragraph("Remedy")
	if c.See == nil {
		d.section("Sources")
		for page, ok := d.optional("- "); ok; page, ok = d.optional("- ") {
			c.See = append(c.See, page)
		}
	}
	if len(d.blocks) > 0 {
		d.mismatch("the end")
	}
	return d.err
}

// document is what is left to read of a document, and the first mistake in it.
type document struct {
	name   string
	blocks []block
	line   int      // of the block that was read last
	wanted []string // what the next block may begin with
	err    error
}

// block is a heading, a paragraph or an item of a list, in one line, with its mark.
type block struct {
	line int
	text string
}

func (b block) heading() bool { return strings.HasPrefix(b.text, "#") }
func (b block) item() bool    { return strings.HasPrefix(b.text, "- ") }

// split makes blocks of lines. Space is what Markdown needs and no more, so that the joined text is as it was written.
func (d *document) split(text string) {
	open := false // the next line can belong to the last block
	for line := range strings.Lines(text) {
		d.line++
		b, indent := block{d.line, strings.TrimSuffix(line, "\n")}, ""
		empty, more := b.text == "", open && !b.heading() && !b.item()
		if more && !empty && d.blocks[len(d.blocks)-1].item() {
			indent = "  "
		}
		words, ok := strings.CutPrefix(b.text, indent)
		if !ok || words != strings.TrimSpace(words) || strings.Contains(words, "  ") {
			d.fail("want one space between words, none at the end, and %d at the begin", len(indent))
		}
		switch {
		case empty:
		case more:
			d.blocks[len(d.blocks)-1].text += " " + words
		default:
			d.blocks = append(d.blocks, b)
		}
		open = !empty && !b.heading()
	}
}

// section reads a heading.
func (d *document) section(title string) {
	if d.next("## "+title) != "" {
		d.fail("want %q alone", "## "+title)
	}
}

// paragraph reads a section of one paragraph.
func (d *document) paragraph(title string) string {
	d.section(title)
	if len(d.blocks) == 0 || d.blocks[0].heading() || d.blocks[0].item() {
		d.mismatch("a paragraph")
	}
	return d.next("")
}

// next reads a block that begins with a mark or a name, and returns the rest.
func (d *document) next(begin string) string {
	rest, ok := d.optional(begin)
	if !ok {
		d.mismatch()
	}
	return rest
}

// optional is next where the document may go on with something else.
func (d *document) optional(begin string) (rest string, ok bool) {
	if len(d.blocks) > 0 {
		if rest, ok = strings.CutPrefix(d.blocks[0].text, begin); ok {
			d.line, d.blocks, d.wanted = d.blocks[0].line, d.blocks[1:], nil
			return rest, true
		}
	}
	d.wanted = append(d.wanted, begin)
	return "", false
}

// mismatch: the next block is neither of what is wanted nor another thing.
func (d *document) mismatch(other ...string) {
	var want []string
	for _, begin := range d.wanted {
		want = append(want, strconv.Quote(begin))
	}
	have := "the end"
	if len(d.blocks) > 0 {
		d.line, have = d.blocks[0].line, fmt.Sprintf("%.60q", d.blocks[0].text)
	}
	d.fail("want %s, have %s", strings.Join(append(want, other...), " or "), have)
}

// fail keeps the first mistake.
func (d *document) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("cause/%s:%d: %s", d.name, d.line, fmt.Sprintf(format, args...))
	}
}
