package workload

import (
	"slices"
	"strconv"
	"strings"
)

// prefillElements is how many elements a list, hash, set or sorted set gets.
const prefillElements = 10

// Prefill writes every key of the range once, with the type that the commands of the workload need, so that reads are
// hits.
type Prefill struct {
	Ops     []Op
	Skipped []string // families of keys that are not written: not one per number, or of unknown type

	w         *Workload
	templates []template
	counts    []uint64 // how many keys each template writes
}

// Prefill plans the writes before the load.
func (w *Workload) Prefill() *Prefill {
	p := &Prefill{w: w}
	for _, family := range w.patterns() {
		r, ok := w.prefillRequest(family)
		if !ok {
			p.Skipped = append(p.Skipped, family.text())
			continue
		}
		count := uint64(1)
		if family.numbered() {
			count = w.keys.n
		}
		op := r.op()
		op.Ratio = float64(count)
		p.Ops, p.counts = append(p.Ops, op), append(p.counts, count)
		p.templates = append(p.templates, compile(r, w.style, &w.values))
	}
	return p
}

// Requests is the number of requests of all streams together.
func (p *Prefill) Requests() uint64 {
	total := uint64(0)
	for _, n := range p.counts {
		total += n
	}
	return total
}

// prefillRequest makes the command that writes a key of a family.
func (w *Workload) prefillRequest(family pattern) (request, bool) {
	if !family.enumerable() {
		return request{}, false
	}
	uses := slices.DeleteFunc(w.keyArguments(), func(k keyArgument) bool { return k.text() != family.text() })
	made := prefillCommand(family.kind, uses)
	if made == nil {
		return request{}, false
	}
	args := make(arguments, 0, len(made))
	for _, text := range made {
		a, err := parseArgument(text)
		if err != nil {
			return request{}, false // the names of elements come from parsed templates
		}
		args = append(args, a)
	}
	key := slices.Clone(family.key)
	for i := range key {
		if key[i].kind == samePart {
			key[i].kind = keyPart
		}
	}
	args = slices.Insert(args, 1, key)
	if args[0].text() == "SET" && w.options.Expire > 0 {
		args = append(args, w.expiryArguments()...)
	}
	return request{commands: [][]argument{args}, keys: [][]int{{1}}, text: strings.Join(words(args), " ")}, true
}

// prefillCommand is the command, without its key, that writes the type which the commands that use the key expect.
func prefillCommand(k kind, uses []keyArgument) []string {
	usedBy := func(names string) bool {
		set := setOf(names)
		return slices.ContainsFunc(uses, func(u keyArgument) bool { return set[u.name] })
	}
	switch {
	case usedBy("PFADD PFCOUNT PFMERGE"):
		return append([]string{"PFADD"}, elements(uses)...)
	case usedBy("INCR DECR INCRBY DECRBY INCRBYFLOAT"):
		return []string{"SET", "0"}
	case usedBy("GEOADD GEODIST GEOHASH GEOPOS GEOSEARCH"):
		return each("GEOADD", elements(uses), "13.4", "52.5", "")
	case k == stringKind:
		return []string{"SET", "{value}"}
	case k == listKind:
		return append([]string{"RPUSH"}, slices.Repeat([]string{"{value}"}, prefillElements)...)
	case k == hashKind && usedBy("HINCRBY HINCRBYFLOAT"):
		return each("HSET", elements(uses), "", "0")
	case k == hashKind:
		return each("HSET", elements(uses), "", "{value}")
	case k == setKind:
		return append([]string{"SADD"}, elements(uses)...)
	case k == zsetKind:
		return each("ZADD", elements(uses), "{rand:0-1000000}", "")
	case k == streamKind:
		return []string{"XADD", "MAXLEN", "~", "1000", "*", "field", "{value}"}
	case !slices.ContainsFunc(uses, func(u keyArgument) bool { return !takesStrings[u.name] }):
		return []string{"SET", "{value}"}
	}
	return nil
}

// takesStrings are the commands for any type: a string serves them. What a script needs is not known; most use strings.
var takesStrings = setOf(`
	DEL UNLINK EXISTS TOUCH TYPE TTL PTTL EXPIRETIME PEXPIRETIME EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST
	DUMP OBJECT MEMORY WATCH RENAME RENAMENX COPY EVAL EVAL_RO EVALSHA EVALSHA_RO`)

// each repeats arguments for each element, which replaces an empty argument.
func each(command string, elements []string, arguments ...string) []string {
	out := []string{command}
	for _, e := range elements {
		for _, a := range arguments {
			if a == "" {
				a = e
			}
			out = append(out, a)
		}
	}
	return out
}

// elementAt is the argument that is an element of the key: a field or a member; negative from the end.
var elementAt = map[string]int{
	"HGET": 2, "HSET": 2, "HSETNX": 2, "HDEL": 2, "HEXISTS": 2, "HINCRBY": 2, "HINCRBYFLOAT": 2, "HMGET": 2,
	"HSTRLEN": 2,
	"SADD":    2, "SREM": 2, "SISMEMBER": 2, "SMISMEMBER": 2, "PFADD": 2,
	"ZADD": -1, "ZINCRBY": -1, "ZREM": 2, "ZSCORE": 2, "ZRANK": 2, "ZREVRANK": 2, "GEOADD": -1, "GEOPOS": 2,
	"GEOHASH": 2,
}

// elements gives names of elements as the templates have them, with the first numbers of a {rand:…}, as they would be
// written in a template.
func elements(uses []keyArgument) []string {
	var out []string
	for _, u := range uses {
		at, known := elementAt[u.name]
		if at < 0 {
			at += len(u.command)
		}
		if !known || at >= len(u.command) || at < 2 {
			continue
		}
		for i := range uint64(prefillElements) {
			name, ok := elementName(u.command[at], i)
			if ok && !slices.Contains(out, name) && len(out) < prefillElements {
				out = append(out, name)
			}
		}
	}
	for i := 0; len(out) == 0 || len(out) < prefillElements && i < prefillElements; i++ {
		if name := "element:" + strconv.Itoa(i); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// elementName is the i-th name of an argument; without a number in it there is one name only.
func elementName(a argument, i uint64) (string, bool) {
	var b strings.Builder
	numbers := 0
	for _, p := range a {
		switch p.kind {
		case literalPart:
			b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.text))
		case randPart:
			if numbers++; p.low+i > p.high {
				return "", false
			}
			b.WriteString(strconv.FormatUint(p.low+i, 10))
		default:
			return "", false
		}
	}
	return b.String(), numbers == 1 || numbers == 0 && i == 0
}

// PrefillStream gives the writes of one worker. It is not safe for concurrent use.
type PrefillStream struct {
	p    *Prefill
	s    *Stream
	op   int
	next uint64
	from uint64
}

// Stream gives stream number index (from 0) of count, which together write every key once.
func (p *Prefill) Stream(seed uint64, index, count int) *PrefillStream {
	return &PrefillStream{p: p, s: p.w.Stream(seed, index, count), next: uint64(index), from: uint64(index)}
}

// Next appends the next write to dst; false when there is none left. Request.Op is an index into Prefill.Ops.
func (s *PrefillStream) Next(dst []byte) ([]byte, Request, bool) {
	for s.op < len(s.p.templates) && s.next >= s.p.counts[s.op] {
		s.op, s.next = s.op+1, s.from
	}
	if s.op == len(s.p.templates) {
		return dst, Request{}, false
	}
	t := &s.p.templates[s.op]
	s.s.keyed = t.hasKey
	dst, r := t.append(dst, s.s, uint16(s.op), s.p.w.options.Keys.Low+s.next)
	s.next += s.s.step
	return dst, r, true
}
