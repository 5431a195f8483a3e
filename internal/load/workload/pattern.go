package workload

import (
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/wire/cluster"
)

// pattern is a family of keys: a key argument of a template.
type pattern struct {
	key  argument
	kind kind
}

// text identifies the family.
func (p pattern) text() string { return strings.ReplaceAll(p.key.text(), "{same}", "{key}") }

// enumerable: it has a key for each number, or one key.
func (p pattern) enumerable() bool { return p.key.varying() == 0 }

// numbered: there is one key for each number.
func (p pattern) numbered() bool { return p.key.count(keyPart)+p.key.count(samePart) > 0 }

// keyArgument is a key argument and its command.
type keyArgument struct {
	pattern
	command []argument
	name    string // of the command, upper case
}

// keyArguments lists those of all requests; channels are not among them.
func (w *Workload) keyArguments() []keyArgument {
	var out []keyArgument
	for _, r := range w.requests {
		for i, c := range r.commands {
			name := strings.ToUpper(c[0].text())
			if name == "SPUBLISH" {
				continue
			}
			for _, at := range r.keys[i] {
				out = append(out, keyArgument{pattern{c[at], commands[name].kind}, c, name})
			}
		}
	}
	return out
}

// patterns lists the families of keys, each once, with the type that their commands expect.
func (w *Workload) patterns() []pattern {
	var out []pattern
	for _, k := range w.keyArguments() {
		i := slices.IndexFunc(out, func(p pattern) bool { return p.text() == k.text() })
		if i < 0 {
			out = append(out, k.pattern)
		} else if out[i].kind == anyKind {
			out[i].kind = k.kind
		}
	}
	return out
}

// replaces are the commands that write a key of any type.
var replaces = setOf("SET SETEX PSETEX MSET BITOP SDIFFSTORE SINTERSTORE SUNIONSTORE ZRANGESTORE GEOSEARCHSTORE")

// checkKinds refuses workloads in which commands for different types share their keys: half of them would fail with
// WRONGTYPE.
func (w *Workload) checkKinds() error {
	first := map[string]keyArgument{}
	for _, k := range w.keyArguments() {
		if k.kind == anyKind {
			continue
		}
		other, seen := first[k.text()]
		if !seen {
			first[k.text()] = k
		} else if other.kind != k.kind && !(replaces[k.name] && replaces[other.name]) {
			return usage("%s has a %v in %q and %s a %v: replies would be WRONGTYPE; give them keys of different names",
				other.name, other.kind, k.text(), k.name, k.kind)
		}
	}
	return nil
}

// checkSlots refuses, for a cluster, requests whose keys are not always in one slot: the reply would be CROSSSLOT.
func (w *Workload) checkSlots() error {
	if !w.options.Cluster {
		return nil
	}
	for _, r := range w.requests {
		for variant := range uint64(3) {
			first, seen := uint16(0), 0
			for i, c := range r.commands {
				for _, at := range r.keys[i] {
					slot := cluster.Slot(w.sampleKey(c[at], variant, uint64(seen)))
					if seen++; seen == 1 {
						first = slot
					} else if slot != first {
						return usage("template %q: its keys are in several slots, which a cluster refuses; put {tag} "+
							"in %q, as {tag}:name", r.text, c[at].text())
					}
				}
			}
		}
	}
	return nil
}

// sampleKey is one of the keys of an argument, with other random parts for each argument.
func (w *Workload) sampleKey(a argument, variant, position uint64) []byte {
	var key []byte
	number := w.options.Keys.Low + (w.options.Keys.High-w.options.Keys.Low)/2*variant
	for _, p := range a {
		switch p.kind {
		case literalPart:
			key = append(key, p.text...)
		case valuePart, randPart, uniquePart, duePart:
			key = strconv.AppendUint(key, variant*7+position*31, 10)
		default:
			key = w.style.appendNumber(key, number, p.kind, true)
		}
	}
	return key
}

// findChannels sets Channels from the arguments of PUBLISH.
func (w *Workload) findChannels() {
	for _, r := range w.requests {
		for _, c := range r.commands {
			if strings.EqualFold(c[0].text(), "PUBLISH") && len(c) > 1 && !slices.Contains(w.Channels, glob(c[1])) {
				w.Channels = append(w.Channels, glob(c[1]))
			}
		}
	}
}

// glob is a pattern for SCAN and PSUBSCRIBE that matches all values of an argument.
func glob(a argument) string {
	var b strings.Builder
	for _, p := range a {
		if p.kind == literalPart {
			b.WriteString(globEscaped(p.text))
		} else {
			b.WriteByte('*')
		}
	}
	return b.String()
}

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func globEscaped(text string) string { return globEscape.Replace(text) }
