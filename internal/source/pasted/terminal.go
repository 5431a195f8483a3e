package pasted

import (
	"regexp"
	"strconv"
	"strings"

	"slowpath/internal/wire/resp"
)

// Bounds of a reply.
const (
	maxDepth  = 8
	maxValues = 50_000
)

// indexes are the numbers of elements at the beginning of a line: "1) 1) (integer) 14".
var indexes = regexp.MustCompile(`^\s*(\d+)\)(?: |$)`)

// level is an array that is not complete yet.
type level struct {
	column int // of the bracket behind the numbers of its elements
	next   int // number of its next element
	elems  []*element
}

// element is a value of a reply.
type element struct {
	value resp.Value
	elems *level // nil: no array
}

// array reads a reply as redis-cli prints it in a terminal. Lines that fit nowhere are left out.
func array(lines []string) resp.Value {
	byColumn := indented(lines)
	top := &level{column: -1}
	stack := []*level{top}
	for _, line := range lines {
		numbers, columns, rest := numbersOf(line)
		at := levelOf(stack, numbers, columns[0], rest, byColumn)
		if at < 0 {
			continue
		}
		stack = stack[:at+1]
		if top.column < 0 {
			top.column = columns[0]
		}
		stack[at].next = numbers[0] + 1
		for _, column := range columns[1:] {
			inner := &level{column: column, next: 2}
			l := stack[len(stack)-1]
			l.elems = append(l.elems, &element{elems: inner})
			stack = append(stack, inner)
		}
		l := stack[len(stack)-1]
		l.elems = append(l.elems, &element{value: scalar(rest)})
	}
	return top.value()
}

// numbersOf are the numbers at the beginning of a line, with the columns of their brackets, and what is behind them.
func numbersOf(line string) (numbers, columns []int, rest string) {
	at := 0
	for len(numbers) < maxDepth {
		m := indexes.FindStringSubmatchIndex(line[at:])
		if m == nil {
			break
		}
		n, _ := strconv.Atoi(line[at+m[2] : at+m[3]])
		numbers, columns = append(numbers, n), append(columns, at+m[3])
		at += m[1]
	}
	return numbers, columns, line[at:]
}

// levelOf is the level that a line goes on with; -1: none. Where a paste has lost the indentation, it is the innermost
// that waits for an element of that number, and of a line that begins an array of numbers the outermost.
func levelOf(stack []*level, numbers []int, column int, rest string, byColumn bool) int {
	outermost := len(numbers) > 1 && strings.HasPrefix(rest, "(integer)")
	found := -1
	for i, l := range stack {
		switch {
		case l.column < 0:
			return i
		case byColumn && l.column == column, !byColumn && l.next == numbers[0]:
			if found = i; outermost || byColumn {
				return i
			}
		}
	}
	return found
}

func (l *level) value() resp.Value {
	v := resp.Value{Kind: resp.Array}
	for _, e := range l.elems {
		if e.elems != nil {
			e.value = e.elems.value()
		}
		v.Elems = append(v.Elems, e.value)
	}
	return v
}

// column is that of the first bracket of a line.
func column(line string) int { return strings.IndexByte(line, ')') }

// indented reports whether lines have more than one column of first brackets, or no inner arrays.
func indented(lines []string) bool {
	for _, line := range lines {
		if column(line) > column(lines[0])+2 {
			return true
		}
	}
	for _, line := range lines {
		if numbers, _, _ := numbersOf(line); len(numbers) > 1 {
			return false
		}
	}
	return true
}

// scalar is a value that is no array.
func scalar(text string) resp.Value {
	text = strings.TrimSpace(text)
	if n, ok := strings.CutPrefix(text, "(integer) "); ok {
		if i, err := strconv.ParseInt(n, 10, 64); err == nil {
			return resp.Value{Kind: resp.Integer, Int: i}
		}
	}
	switch {
	case text == "(nil)":
		return resp.Value{Kind: resp.Null}
	case strings.HasPrefix(text, "(empty"):
		return resp.Value{Kind: resp.Array}
	case len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"':
		if s, err := strconv.Unquote(text); err == nil {
			text = s
		} else {
			text = text[1 : len(text)-1]
		}
	}
	return resp.Value{Kind: resp.BulkString, Str: []byte(text)}
}

// form is that of a reply.
type form int

const (
	otherForm form = iota
	slowlogForm
	latestForm
	pairsForm
	textForm
)

// formOf is the form that half of the elements of a reply have, or more: the last one may be cut.
func formOf(v resp.Value) form {
	var count [textForm + 1]int
	for _, e := range v.Elems {
		count[formOfElement(e)]++
	}
	for f := slowlogForm; f <= textForm; f++ {
		if 2*count[f] >= len(v.Elems) && count[f] > 0 {
			return f
		}
	}
	return otherForm
}

func formOfElement(v resp.Value) form {
	ints := 0
	for _, e := range v.Elems {
		if e.Kind == resp.Integer {
			ints++
		}
	}
	switch n := len(v.Elems); {
	case n >= 4 && ints >= 3 && len(v.Elems[3].Elems) > 0:
		return slowlogForm
	case n >= 4 && ints >= 3 && v.Elems[0].Kind == resp.BulkString:
		return latestForm
	case n == 2 && ints == 2:
		return pairsForm
	case v.Kind == resp.BulkString:
		return textForm
	}
	return otherForm
}
