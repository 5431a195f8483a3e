package bounds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The factors that docs/bounds.md has columns for.
const lower, higher = "0.7", "1.3"

// mostShown is how many bounds the list of those has on which most verdicts hang.
const mostShown = 10

// Markdown is docs/bounds.md.
func Markdown(all []Bound, found Sensitivities) []byte {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("| kind | bounds | what it means |\n|---|---|---|\n")
	for _, k := range Kinds {
		fmt.Fprintf(&b, "| [%s](#%s) | %d | %s |\n", k.Name, k.Name, len(ofKind(all, k.Name)), k.Meaning)
	}
	fmt.Fprintf(&b, "| all | %d | |\n", len(all))
	writeMost(&b, all, found)
	for _, k := range Kinds {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", k.Name, strings.ToUpper(k.Meaning[:1])+k.Meaning[1:])
		b.WriteString("| name | value | what it bounds | why | used in | −30 % | +30 % |\n")
		b.WriteString("|---|---|---|---|---|---|---|\n")
		for _, x := range ofKind(all, k.Name) {
			fmt.Fprintf(&b, "| [`%s`](../%s) | %s | %s | %s | %s | %s | %s |\n", x.Name, x.File, x.shownValue(),
				cell(x.meaning()), cell(x.Reason), strings.Join(x.UsedIn, ", "), found.cell(x.Name, lower),
				found.cell(x.Name, higher))
		}
	}
	return []byte(b.String())
}

const head = `# Bounds

Made from the comments of internal/diagnose by "make docs"; do not edit. How a bound is declared is in
[CONTRIBUTING.md](../CONTRIBUTING.md#bounds), why so in [decision 0020](decisions/0020-bounds.md).

The last two columns say how many recordings of the corpus are judged otherwise, with all sources, when the bound alone
is 30 % lower or higher, of those whose diagnosis reads it. **1** + 2 of 85: in one the first finding changes, in two
other findings appear or vanish. On a bound with "0 of 85" no verdict of the corpus hangs; one with "0 of 0" no
recording reads. A dash: it is used in other constants only, or where recordings are compared. Whole numbers change by
one at least, so that a 2 is halved, and a share of 0.9 becomes one that nothing reaches. "make sensitivity" computes
the columns; [bounds.json](bounds.json) has each change.

`

func ofKind(all []Bound, kind string) (out []Bound) {
	for _, b := range all {
		if b.Kind == kind {
			out = append(out, b)
		}
	}
	return out
}

// writeMost lists the bounds on which most verdicts hang.
func writeMost(b *strings.Builder, all []Bound, found Sensitivities) {
	most := slices.Clone(all)
	slices.SortStableFunc(most, func(x, y Bound) int {
		return cmp.Or(cmp.Compare(found.firsts(y.Name), found.firsts(x.Name)),
			cmp.Compare(found.changes(y.Name), found.changes(x.Name)))
	})
	b.WriteString("\nThe bounds on which most verdicts hang:\n\n")
	b.WriteString("| name | kind | value | −30 % | +30 % |\n|---|---|---|---|---|\n")
	for _, x := range most[:min(mostShown, len(most))] {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", x.Name, x.Kind, x.shownValue(), found.cell(x.Name, lower),
			found.cell(x.Name, higher))
	}
}

// firsts is how many first findings change with a bound, changes how many recordings are judged otherwise.
func (s Sensitivities) firsts(name string) (n int) {
	for _, list := range s[name].Changes {
		for _, c := range list {
			if c.First != "" {
				n++
			}
		}
	}
	return n
}

func (s Sensitivities) changes(name string) (n int) {
	for _, list := range s[name].Changes {
		n += len(list)
	}
	return n
}

func (s Sensitivities) cell(name, factor string) string {
	x, ok := s[name]
	if !ok || x.LeftOut {
		return "–"
	}
	first, found := 0, 0
	for _, c := range x.Changes[factor] {
		if c.First != "" {
			first++
		} else {
			found++
		}
	}
	text := strconv.Itoa(first)
	if first > 0 {
		text = "**" + text + "**"
	}
	if found > 0 {
		text += fmt.Sprintf(" + %d", found)
	}
	return fmt.Sprintf("%s of %d", text, x.Read)
}

// shownValue is the value as the source has it; one in nanoseconds as a duration, too.
func (b Bound) shownValue() string {
	text := "`" + b.Value + "`"
	ns, err := strconv.ParseFloat(strings.ReplaceAll(b.Value, "_", ""), 64)
	if err == nil && strings.HasSuffix(b.Name, "Ns") && ns >= float64(time.Microsecond) {
		text += " (" + time.Duration(ns).String() + ")"
	}
	return text
}

// meaning is what it bounds, without its own name at the begin.
func (b Bound) meaning() string {
	name := b.Name[strings.LastIndexByte(b.Name, '.')+1:]
	return strings.TrimPrefix(strings.TrimPrefix(b.Meaning, name+": "), name+" is ")
}

// cell is a sentence in a table. A name of the source stays as it is.
func cell(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	word, _, _ := strings.Cut(s[size:], " ")
	if size == 0 || strings.ContainsFunc(word, unicode.IsUpper) || strings.Contains(word, "/") {
		return strings.ReplaceAll(s, "|", `\|`)
	}
	return strings.ReplaceAll(string(unicode.ToUpper(r))+s[size:], "|", `\|`)
}
