package pasted

import (
	"regexp"
	"strconv"
	"strings"

	"slowpath/internal/wire/resp"
)

// Times in seconds since the Unix epoch that an entry can have: from 2008, before which there was no Redis.
const (
	firstSecond = 1_200_000_000
	lastSecond  = 5_000_000_000
)

// clientAddress ends the arguments of an entry of SLOWLOG.
var clientAddress = regexp.MustCompile(`^(?:\S*[0-9a-fA-F.:\]]:\d+|/\S*:\d+)$`)

// number is a line as an integer, if it is one.
func number(line string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(line, "(integer) "), 10, 64)
	return n, err == nil
}

// value is a line as a value: an integer where it is one.
func value(line string) resp.Value {
	if n, ok := number(line); ok {
		return resp.Value{Kind: resp.Integer, Int: n}
	}
	return resp.Value{Kind: resp.BulkString, Str: []byte(line)}
}

// flat is a reply of a line for each value.
func flat(lines []string) resp.Value {
	v := resp.Value{Kind: resp.Array}
	for _, line := range lines[:min(len(lines), maxValues)] {
		v.Elems = append(v.Elems, resp.Value{Kind: resp.BulkString, Str: []byte(line)})
	}
	return v
}

// rows is a reply of arrays of so many values.
func rows(lines []string, width int) resp.Value {
	v := resp.Value{Kind: resp.Array}
	for ; len(lines) >= width && len(v.Elems) < maxValues; lines = lines[width:] {
		row := resp.Value{Kind: resp.Array}
		for _, line := range lines[:width] {
			row.Elems = append(row.Elems, value(line))
		}
		v.Elems = append(v.Elems, row)
	}
	return v
}

// rawSlowlog reads entries of SLOWLOG: id, time, microseconds, arguments, and from Redis 4.0 on the client's address
// and name.
func rawSlowlog(lines []string) resp.Value {
	v := resp.Value{Kind: resp.Array}
	for i := 0; i < len(lines) && len(v.Elems) < maxValues; {
		if !beginsEntry(lines[i:]) {
			i++
			continue
		}
		to := i + 4
		for to < len(lines) && !beginsEntry(lines[to:]) {
			to++
		}
		v.Elems = append(v.Elems, rawEntry(lines[i:to]))
		i = to
	}
	return v
}

// beginsEntry reports whether an entry begins here.
func beginsEntry(lines []string) bool {
	if len(lines) < 4 {
		return false
	}
	id, ok1 := number(lines[0])
	second, ok2 := number(lines[1])
	_, ok3 := number(lines[2])
	return ok1 && ok2 && ok3 && id >= 0 && second >= firstSecond && second < lastSecond
}

// rawEntry is an entry of these lines.
func rawEntry(lines []string) resp.Value {
	args := lines[3:]
	e := resp.Value{Kind: resp.Array, Elems: []resp.Value{value(lines[0]), value(lines[1]), value(lines[2]), {}}}
	for i := len(args) - 1; i > 0 && i >= len(args)-3; i-- {
		if clientAddress.MatchString(args[i]) {
			name := ""
			if i+1 < len(args) {
				name = args[i+1]
			}
			e.Elems = append(e.Elems, flat(args[i : i+1]).Elems[0], flat([]string{name}).Elems[0])
			args = args[:i]
			break
		}
	}
	e.Elems[3] = flat(args)
	return e
}
