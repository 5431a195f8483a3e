package pasted

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	told "slowpath/internal/source/server"
	"slowpath/internal/wire/resp"
)

// kind is which command printed a part.
type kind int

const (
	infoText kind = iota
	slowlogReply
	latestReply
	historyReply
	clientsText
	configReply
	doctorText
)

// part is what one command printed.
type part struct {
	kind    kind
	address string     // of the prompt before it; empty: none
	event   string     // of LATENCY HISTORY
	text    string     // of INFO, CLIENT LIST and LATENCY DOCTOR
	value   resp.Value // of the others
}

var (
	// promptLine is that of redis-cli, with what was typed.
	promptLine = regexp.MustCompile(`^(redis(?: /\S+)?|valkey|not connected|` +
		`(?:\[[\da-fA-F:.]+\]|[\w.-]{1,253}):\d{1,5})(?:\[\d+\])?(?:\(TX\))?>\s*(.*)$`)
	// shellLine has redis-cli with its arguments.
	shellLine = regexp.MustCompile(`(?:^|[\s/])(?:redis|valkey|keydb)-cli(?:\s+(.*))?$`)
	hostFlag  = regexp.MustCompile(`(?:^|\s)-h\s+([\w.-]{1,253})(?:\s|$)`)
	portFlag  = regexp.MustCompile(`(?:^|\s)-p\s+(\d{1,5})(?:\s|$)`)
	infoLine  = regexp.MustCompile(`^[a-z][A-Za-z0-9_|.-]*:(?:[^\s/].*)?$`)
	indexed   = regexp.MustCompile(`^\s*\d+\) `)
	paired    = regexp.MustCompile(`^\s*\d+# (".*?"|\S+) => (.*)$`) // a map under RESP3
	// doctorLine is an event in the report of LATENCY DOCTOR.
	doctorLine = regexp.MustCompile(`^\d+\. [\w.-]{1,40}: \d+ latency spikes? \(average .*Worst all time event \d+ms`)
	escapes    = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
)

// splitter finds parts in lines.
type splitter struct {
	parts   []part
	command []string // that was typed last, in small letters
	address string

	info     []string
	names    map[string]bool // of info
	clients  []string
	array    []string
	settings []resp.Value // of a map
	doctor   []string
	raw      []string // lines that are of none of these
}

// split finds the parts of a text, and counts its lines.
func split(text []byte) (parts []part, lines int) {
	s := &splitter{names: map[string]bool{}}
	for line := range bytes.Lines(text) {
		lines++
		s.line(clean(line))
	}
	s.flush()
	return s.parts, lines
}

// clean is a line without what quotes, colours or ends it.
func clean(b []byte) string {
	b = b[:min(len(b), maxLineBytes)]
	line := strings.ToValidUTF8(strings.TrimRight(string(b), "\r\n"), "?")
	if strings.Contains(line, "\x1b") {
		line = escapes.ReplaceAllString(line, "")
	}
	for strings.HasPrefix(line, "> ") || line == ">" { // a quotation in Markdown or mail
		line = strings.TrimPrefix(line[1:], " ")
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\u00a0' { // a space that does not break, as web pages have them
			return ' '
		}
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
}

func (s *splitter) line(line string) {
	bare := strings.TrimSpace(line)
	m := paired.FindStringSubmatch(line)
	switch {
	case s.prompt(bare):
	case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
		s.flush()
	case doctorLine.MatchString(bare):
		s.doctor = append(s.doctor, bare)
	case isClient(bare):
		s.clients = append(s.clients, bare)
	case m != nil:
		s.settings = append(s.settings, scalar(m[1]), scalar(m[2]))
	case indexed.MatchString(line):
		if strings.HasPrefix(bare, "1) ") && len(s.array) > 0 && column(line) <= column(s.array[0]) {
			s.flush() // another one begins: an inner array begins on a line of its outer one
		}
		if len(s.array) < maxValues {
			s.array = append(s.array, line)
		}
	case infoLine.MatchString(bare):
		name, _, _ := strings.Cut(bare, ":")
		if s.names[name] {
			s.flush()
		}
		s.names[name] = true
		s.info = append(s.info, bare)
	case bare != "" || len(s.raw) > 0:
		s.raw = append(s.raw, bare)
	}
}

// prompt takes a line on which a command was typed.
func (s *splitter) prompt(line string) bool {
	typed, address := "", ""
	if m := promptLine.FindStringSubmatch(line); m != nil {
		typed = m[2]
		if strings.Contains(m[1], ":") {
			address = m[1]
		}
	} else if m := shellLine.FindStringSubmatch(line); m != nil && len(line) < 1000 {
		typed = m[1]
		host, port := "127.0.0.1", "6379"
		if h := hostFlag.FindStringSubmatch(typed); h != nil {
			host = h[1]
		}
		if p := portFlag.FindStringSubmatch(typed); p != nil {
			port = p[1]
		}
		if hostFlag.MatchString(typed) || portFlag.MatchString(typed) {
			address = host + ":" + port
		}
	} else {
		return false
	}
	s.flush()
	words := strings.Fields(strings.ToLower(typed))
	from := slices.IndexFunc(words, func(w string) bool { return commands[w] })
	s.command = nil
	if from >= 0 {
		s.command = words[from:]
	}
	if address != "" {
		s.address = address
	}
	return true
}

// commands are those whose replies are read.
var commands = map[string]bool{
	"info": true, "slowlog": true, "commandlog": true, "latency": true, "client": true, "config": true,
}

// typed reports whether a command was typed last.
func (s *splitter) typed(words ...string) bool {
	return len(s.command) >= len(words) && slices.Equal(s.command[:len(words)], words)
}

// isClient recognises a line of CLIENT LIST.
func isClient(line string) bool {
	return strings.HasPrefix(line, "id=") && strings.Contains(line, " addr=") || strings.HasPrefix(line, "addr=") &&
		strings.Contains(line, " fd=")
}

// flush ends the parts that are under way.
func (s *splitter) flush() {
	if isInfo(s.names) {
		s.add(part{kind: infoText, text: strings.Join(s.info, "\n")})
	}
	if len(s.clients) > 0 {
		s.add(part{kind: clientsText, text: strings.Join(s.clients, "\n")})
	}
	if len(s.doctor) > 0 {
		s.add(part{kind: doctorText, text: strings.Join(s.doctor, "\n")})
	}
	if len(s.settings) > 0 {
		s.reply(resp.Value{Kind: resp.Array, Elems: s.settings})
	}
	if len(s.array) > 0 {
		s.reply(array(s.array))
	}
	if len(s.raw) > 0 {
		s.replyOfRaw()
	}
	clear(s.names)
	s.info, s.clients, s.doctor, s.array, s.settings, s.raw = nil, nil, nil, nil, nil, nil
}

func (s *splitter) add(p part) {
	p.address = s.address
	if len(s.parts) < maxParts {
		s.parts = append(s.parts, p)
	}
}

// reply takes a reply by its form, or by what was typed where that does not tell.
func (s *splitter) reply(v resp.Value) {
	switch form := formOf(v); {
	case s.typed("commandlog") && !slices.Contains(s.command, "slow"): // large-request and large-reply have bytes
	case form == slowlogForm:
		s.add(part{kind: slowlogReply, value: v})
	case form == latestForm:
		s.add(part{kind: latestReply, value: v})
	case form == pairsForm && s.typed("latency", "history") && len(s.command) > 2:
		s.add(part{kind: historyReply, event: s.command[2], value: v})
	case form == textForm && len(v.Elems)%2 == 0 && (s.typed("config", "get") || told.Setting(v.Elems[0].Text())):
		s.add(part{kind: configReply, value: v})
	}
}

// replyOfRaw takes a reply as redis-cli prints it where its output is no terminal: a line for each value.
func (s *splitter) replyOfRaw() {
	switch {
	case s.typed("latency", "latest"):
		s.reply(rows(s.raw, 4))
	case s.typed("latency", "history"):
		s.reply(rows(s.raw, 2))
	case s.typed("config", "get"):
		s.reply(flat(s.raw))
	default:
		if v := rawSlowlog(s.raw); len(v.Elems) > 0 {
			s.add(part{kind: slowlogReply, value: v})
		}
	}
}

// signs are names of INFO of which a text has one at least.
var signs = []string{
	"redis_version", "valkey_version", "uptime_in_seconds", "connected_clients", "used_memory", "used_cpu_sys",
	"total_commands_processed", "instantaneous_ops_per_sec", "latest_fork_usec", "evicted_keys",
	"mem_fragmentation_ratio", "rdb_last_save_time", "connected_slaves", "role", "blocked_clients",
}

// isInfo reports whether these are names of INFO.
func isInfo(names map[string]bool) bool {
	for name := range names {
		if slices.Contains(signs, name) && (name != "role" || len(names) > 1) ||
			strings.HasPrefix(name, "cmdstat_") {
			return true
		}
	}
	return false
}
