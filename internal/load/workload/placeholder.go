package workload

import (
	"strconv"
	"strings"
)

// Placeholders explains the notation of templates, for the help text.
const Placeholders = `{key}            number of a key, 12 digits, drawn from --keys; a request has another key for each
{key:10}         repeats its argument ten times, with ten keys (in MSET with the value after it)
{same}           the number of the key before it, again
{tag}            the hash tag of all keys of the request, with its braces, for a key without a number
{value}          a value, see --value-size and --value-data
{rand:LOW-HIGH}  a whole number, all equally likely
{unique}         a number that no other request of this run has
{due}            when the call was due, in ns since the epoch: 19 digits; it gives the delivery time of messages
{{ and }}        braces
The keys of a request are in one slot: where a request has several, the first digits of all numbers become hash tags,
slowpath:key:{0000000042}07, and the keys of one request follow each other: 4207, 4208, … A request can be several
commands with ; between them, as 'MULTI; SET key:{key} {value}; INCR counter:{same}; EXEC'. All keys and channels begin
with slowpath:. EVALSHA takes the text of the script instead of its digest: the script is loaded first.`

// part is a piece of an argument of a template.
type part struct {
	kind      partKind
	text      string // literal
	low, high uint64 // of a random number
	times     int    // of a key: how often its argument is repeated
}

type partKind uint8

const (
	literalPart partKind = iota
	keyPart
	samePart
	tagPart
	valuePart
	randPart
	uniquePart
	duePart
)

// argument is an argument of a command of a template.
type argument []part

// maxParts bounds the parts of an argument, with literal ones: a stream has room for this number.
const maxParts = 32

// parseArgument finds the placeholders in an argument.
func parseArgument(text string) (argument, error) {
	var out argument
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			out = append(out, part{kind: literalPart, text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c != '{' && c != '}':
			literal.WriteByte(c)
		case i+1 < len(text) && text[i+1] == c:
			literal.WriteByte(c)
			i++
		case c == '}':
			return nil, usage("%q: a } without a {; a brace itself is written {{ or }}", text)
		default:
			inside, _, closed := strings.Cut(text[i+1:], "}")
			p, ok := parsePlaceholder(inside)
			if !closed || !ok {
				return nil, usage("%q: {%s is no placeholder; there are {key} {key:N} {same} {tag} {value} "+
					"{rand:LOW-HIGH} {unique} {due}, and a brace itself is written {{ or }}", text, text[i+1:])
			}
			flush()
			out = append(out, p)
			i += len(inside) + 1
		}
	}
	flush()
	if len(out) >= maxParts { // a prefix may be added
		return nil, usage("%q: more than %d placeholders and texts between them in one argument", text, maxParts-1)
	}
	return out, nil
}

func parsePlaceholder(inside string) (part, bool) {
	name, rest, has := strings.Cut(inside, ":")
	switch {
	case name == "rand" && has:
		low, high, isRange := strings.Cut(rest, "-")
		l, err1 := strconv.ParseUint(low, 10, 63)
		h, err2 := strconv.ParseUint(high, 10, 63)
		return part{kind: randPart, low: l, high: h}, isRange && err1 == nil && err2 == nil && l <= h
	case name == "key" && has:
		n, err := strconv.Atoi(rest)
		return part{kind: keyPart, times: n}, err == nil && n >= 1 && n <= maxKeysPerRequest
	case has:
		return part{}, false
	}
	kind, ok := map[string]partKind{
		"key": keyPart, "same": samePart, "tag": tagPart, "value": valuePart,
		"unique": uniquePart, "due": duePart,
	}[name]
	return part{kind: kind, times: 1}, ok
}

// is reports whether the argument is one placeholder and nothing else.
func (a argument) is(k partKind) bool { return len(a) == 1 && a[0].kind == k }

func (a argument) count(k partKind) int {
	n := 0
	for _, p := range a {
		if p.kind == k {
			n++
		}
	}
	return n
}

// varying counts the placeholders of variable length.
func (a argument) varying() int {
	return a.count(valuePart) + a.count(randPart) + a.count(uniquePart) + a.count(duePart)
}

// text is the argument with its placeholders as they are written.
func (a argument) text() string {
	var b strings.Builder
	for _, p := range a {
		switch p.kind {
		case literalPart:
			b.WriteString(p.text)
		case randPart:
			b.WriteString("{rand:" + strconv.FormatUint(p.low, 10) + "-" + strconv.FormatUint(p.high, 10) + "}")
		default:
			b.WriteString([...]string{
				keyPart: "{key}", samePart: "{same}", tagPart: "{tag}", valuePart: "{value}",
				uniquePart: "{unique}", duePart: "{due}",
			}[p.kind])
		}
	}
	return b.String()
}
