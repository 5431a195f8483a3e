package workload

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
)

// maxKeysPerRequest is how many keys can share a hash tag.
const maxKeysPerRequest = 10_000

// request is a parsed template: one command, or several that are sent together.
type request struct {
	commands [][]argument
	keys     [][]int // positions of the keys of each command
	text     string
}

// parseRequest parses a template, refuses commands that must not be sent, and adds the prefix to its keys.
func parseRequest(text string, o Options) (request, error) {
	lists, err := split(text)
	if err != nil {
		return request{}, usage("template %v", err)
	}
	r := request{text: text}
	for _, args := range lists {
		if err := refuse(args, o.Dangerous); err != nil {
			return request{}, usage("template %q: %w", text, err)
		}
		parsed, err := parseCommand(args)
		if err != nil {
			return request{}, err
		}
		keys := parsed.keyPositions()
		if keys == nil {
			return request{}, usage("template %q: it cannot be told which arguments of %s are keys", text, opName(args))
		}
		for _, at := range keys {
			parsed[at] = prefixed(parsed[at], o.prefix())
		}
		if strings.EqualFold(args[0], "PUBLISH") {
			keys = nil // a channel has no slot and leaves nothing
		}
		r.commands, r.keys = append(r.commands, parsed), append(r.keys, keys)
	}
	return r, r.check()
}

// arguments are those of one command.
type arguments []argument

func (r request) runsScript() bool {
	return slices.ContainsFunc(r.commands, func(c []argument) bool { return runsScript(words(c)) })
}

// parseCommand finds the placeholders and repeats the arguments with {key:N}.
func parseCommand(args []string) (arguments, error) {
	step := max(commands[strings.ToUpper(args[0])].step, 1)
	script := isScript(args)
	var parsed arguments
	for i, arg := range args {
		a, err := argument{{kind: literalPart, text: arg}}, error(nil)
		if !(script && i == 1) { // Lua uses braces
			a, err = parseArgument(arg)
		}
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, a)
	}
	if parsed[0].text() != args[0] || len(parsed[0]) != 1 || parsed[0][0].kind != literalPart {
		return nil, usage("%q: the name of a command cannot have placeholders", args[0])
	}
	var out arguments
	for i := 0; i < len(parsed); i++ {
		times := 1
		for _, p := range parsed[i] {
			times = max(times, p.times)
		}
		until := i + 1
		if times > 1 {
			until = min(i+step, len(parsed))
		}
		for range times {
			out = append(out, parsed[i:until]...)
		}
		i = until - 1
	}
	return out, nil
}

func isScript(args []string) bool {
	name := strings.ToUpper(args[0])
	return len(args) > 1 && (name == "EVAL" || name == "EVALSHA" || name == "EVAL_RO" || name == "EVALSHA_RO")
}

// keyPositions finds the keys; of an unknown command they are the arguments with {key} or {same}.
func (args arguments) keyPositions() []int {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.text()
	}
	if _, known := commands[strings.ToUpper(words[0])]; known {
		return keyPositions(words)
	}
	at := []int{}
	for i, a := range args {
		if a.count(keyPart)+a.count(samePart) > 0 {
			at = append(at, i)
		}
	}
	return at
}

// prefixed is a key with the prefix, which is added unless it is there.
func prefixed(key argument, prefix string) argument {
	if len(key) > 0 && key[0].kind == literalPart {
		rest, _ := strings.CutPrefix(key[0].text, Prefix)
		rest, _ = strings.CutPrefix(rest, strings.TrimPrefix(prefix, Prefix))
		return append(argument{{kind: literalPart, text: prefix + rest}}, key[1:]...)
	}
	return append(argument{{kind: literalPart, text: prefix}}, key...)
}

// check refuses sequences that would leave the connection in a transaction, and placeholders that refer to no key.
func (r request) check() error {
	open, keys := false, 0
	for i, c := range r.commands {
		switch name := strings.ToUpper(c[0].text()); {
		case name == "MULTI" && !open:
			open = true
		case (name == "EXEC" || name == "DISCARD") && open:
			open = false
		case name == "MULTI" || name == "EXEC" || name == "DISCARD" || name == "WATCH" && (open || !r.opens(i)) ||
			name == "UNWATCH":
			return usage("template %q: %s does not fit here; a transaction is 'WATCH …; MULTI; …; EXEC' in one "+
				"template", r.text, name)
		}
		for _, a := range c {
			for _, p := range a {
				if p.kind == keyPart {
					keys++
				} else if p.kind == samePart && keys == 0 {
					return usage("template %q: {same} stands before the first {key}", r.text)
				}
			}
		}
	}
	if open {
		return usage("template %q: a MULTI without EXEC at its end", r.text)
	}
	if keys == 0 && slices.ContainsFunc(r.commands, func(c []argument) bool {
		return slices.ContainsFunc(c, func(a argument) bool { return a.count(tagPart) > 0 })
	}) {
		return usage("template %q: {tag} without a {key} whose tag it could be", r.text)
	}
	if keys > maxKeysPerRequest {
		return usage("template %q: %d keys in one request; at most %d", r.text, keys, maxKeysPerRequest)
	}
	return nil
}

// opens: a MULTI follows.
func (r request) opens(after int) bool {
	return slices.ContainsFunc(r.commands[after:], func(c []argument) bool {
		return strings.EqualFold(c[0].text(),
			"MULTI")
	})
}

// op describes the calls of the request.
func (r request) op() Op {
	op := Op{Name: opName(words(r.commands[0])), Reads: r.reads(), ReadOnly: true}
	inner := len(r.commands) > 1
	for i, c := range r.commands {
		name := strings.ToUpper(c[0].text())
		op.ReadOnly = op.ReadOnly && readOnly[name]
		op.Blocks = op.Blocks || !inner && blocking[name]
		if i > 0 {
			op.Name += "+" + opName(words(c))
		}
	}
	if inner && r.opens(0) {
		op.Name = "MULTI"
	}
	return op
}

// reads: an empty reply is a miss, since the request only reads, also in a transaction or a script.
func (r request) reads() bool {
	reads := 0
	for _, c := range r.commands {
		name := strings.ToUpper(c[0].text())
		switch {
		case missReads[name] || isScript(words(c)) && scriptReads(c[1].text()):
			reads++
		case name != "MULTI" && name != "EXEC" && name != "WATCH":
			return false
		}
	}
	return reads > 0
}

func words(args []argument) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a.text()
	}
	return out
}

// keyArguments counts the arguments that are keys, and the keys that are drawn.
func (r request) keyArguments() (arguments, drawn int) {
	for i, c := range r.commands {
		arguments += len(r.keys[i])
		for _, a := range c {
			drawn += a.count(keyPart)
		}
	}
	return arguments, drawn
}

// loadScripts replaces the text in each EVALSHA by its digest, and gives the commands that load the texts.
func (r request) loadScripts() (setup [][]string) {
	for _, c := range r.commands {
		name := strings.ToUpper(c[0].text())
		if (name != "EVALSHA" && name != "EVALSHA_RO") || len(c) < 2 {
			continue
		}
		script := c[1].text()
		if hexSHA1.MatchString(script) {
			continue
		}
		sum := sha1.Sum([]byte(script)) // as EVALSHA requires
		setup = append(setup, []string{"SCRIPT", "LOAD", script})
		c[1] = argument{{kind: literalPart, text: hex.EncodeToString(sum[:])}}
	}
	return setup
}
