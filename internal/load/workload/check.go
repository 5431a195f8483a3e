package workload

import (
	"bytes"
	"fmt"
	"strings"
)

// checkKind says which parts of a reply are values.
type checkKind uint8

const (
	notChecked checkKind = iota
	checkOne             // the reply is the value of the request's key
	checkAll             // all elements are values of the request's key
	checkEach            // the elements are the values of the request's key and those after it
)

// checkOf says which parts of the reply to a request are values, if only values are written to its keys.
func checkOf(r request) checkKind {
	if len(r.commands) != 1 || len(r.keys[0]) == 0 {
		return notChecked
	}
	c := r.commands[0]
	for _, at := range r.keys[0] {
		if c[at].count(keyPart) != 1 || c[at].count(samePart) != 0 {
			return notChecked
		}
	}
	switch name := strings.ToUpper(c[0].text()); name {
	case "GET", "GETDEL", "GETEX", "GETSET", "HGET", "LINDEX":
		return checkOne
	case "LPOP", "RPOP":
		if len(c) == 2 {
			return checkOne
		}
		return checkAll
	case "LRANGE", "HMGET", "HVALS":
		return checkAll
	case "MGET":
		return checkEach
	}
	return notChecked
}

const noStep = 1 << 20 // one value only: more than the arguments of any command

// valuesAt says which arguments of a writing command are values: from the first, every step-th. Keys whose values are
// checked may only be used by these commands and by those of keepsValues.
var valuesAt = map[string]struct{ first, step int }{
	"SET": {2, noStep}, "SETNX": {2, noStep}, "GETSET": {2, noStep}, "SETEX": {3, noStep}, "PSETEX": {3, noStep},
	"MSET": {2, 2}, "MSETNX": {2, 2}, "HSET": {3, 2}, "HMSET": {3, 2}, "HSETNX": {3, 2},
	"LPUSH": {2, 1}, "RPUSH": {2, 1}, "LPUSHX": {2, 1}, "RPUSHX": {2, 1},
}

var keepsValues = setOf(`
	GET MGET GETDEL GETEX STRLEN GETRANGE SUBSTR DEL UNLINK EXISTS TOUCH TYPE TTL PTTL EXPIRE PEXPIRE
	EXPIREAT PEXPIREAT PERSIST EXPIRETIME PEXPIRETIME DUMP OBJECT MEMORY WATCH GETBIT BITCOUNT BITPOS
	BITFIELD_RO HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HDEL HSCAN HRANDFIELD LPOP RPOP LLEN
	LINDEX LRANGE LTRIM LPOS LREM`)

// markChecked marks the ops whose replies can be checked, where Options.Verify asks for it.
func (w *Workload) markChecked() error {
	if !w.options.Verify {
		return nil
	}
	other, any := w.otherWriters(), false
	w.checks = make([]checkKind, len(w.requests))
	for i, r := range w.requests {
		w.checks[i] = checkOf(r)
		checked := w.checks[i] != notChecked
		for _, at := range r.keys[0] {
			checked = checked && other[pattern{key: r.commands[0][at]}.text()] == ""
		}
		w.Ops[i].Checked = checked
		any = any || checked
	}
	if any {
		return nil
	}
	for key, by := range other {
		return usage("nothing to verify: %s writes other values to %q than those that belong to its keys", by, key)
	}
	return usage("nothing to verify: no command reads values of keys with {key}; add one of GET, MGET, HGET, HMGET, " +
		"HVALS, LINDEX, LRANGE, LPOP, RPOP")
}

// otherWriters are the commands that write something else than values, by the family of keys.
func (w *Workload) otherWriters() map[string]string {
	out := map[string]string{}
	for _, k := range w.keyArguments() {
		at, writes := valuesAt[k.name]
		for i := at.first; writes && i < len(k.command); i += at.step {
			if !k.command[i].is(valuePart) {
				out[k.text()] = k.name
			}
		}
		if !writes && !keepsValues[k.name] {
			out[k.text()] = k.name
		}
	}
	return out
}

// Check checks the whole reply to a request of an op that is Checked: it is ErrWrongValue if the workload did not write
// it. Nulls are misses and error replies are errors, and neither is wrong. It allocates only for an error.
func (s *Stream) Check(r Request, reply []byte) error {
	if int(r.Op) >= len(s.w.Ops) || !s.w.Ops[r.Op].Checked || r.Key < 0 || len(reply) == 0 {
		return nil
	}
	kind, key := s.w.checks[r.Op], uint64(r.Key)
	switch {
	case reply[0] == '-' || reply[0] == '!' || reply[0] == '_':
		return nil
	case kind == checkOne:
		rest, err := s.w.checkBulk(reply, key)
		return whole(rest, err)
	case reply[0] != '*':
		return fmt.Errorf("%w: the reply %s is no array", ErrWrongValue, sample(reply))
	}
	n, rest, ok := length(reply)
	if !ok {
		return fmt.Errorf("%w: the reply %s is no array", ErrWrongValue, sample(reply))
	}
	for range max(n, 0) {
		var err error
		if rest, err = s.w.checkBulk(rest, key); err != nil {
			return err
		}
		if kind == checkEach {
			key = s.w.neighbour(key)
		}
	}
	return whole(rest, nil)
}

func whole(rest []byte, err error) error {
	if err == nil && len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes after the reply", ErrWrongValue, len(rest))
	}
	return err
}

// checkBulk checks a bulk string or null at the start of a reply, and gives what follows.
func (w *Workload) checkBulk(reply []byte, key uint64) (rest []byte, err error) {
	if bytes.HasPrefix(reply, []byte("_\r\n")) {
		return reply[3:], nil
	}
	n, rest, ok := length(reply)
	switch {
	case !ok || reply[0] != '$' || n >= 0 && len(rest) < n+2 || n >= 0 && (rest[n] != '\r' || rest[n+1] != '\n'):
		return nil, fmt.Errorf("%w: key %d: %s is no whole bulk string", ErrWrongValue, key, sample(reply))
	case n < 0:
		return rest, nil
	}
	return rest[n+2:], w.values.check(rest[:n], key)
}

// length reads the number on the first line of a reply. It is -1 or below MaxValueBytes.
func length(reply []byte) (n int, rest []byte, ok bool) {
	end := bytes.IndexByte(reply, '\n')
	if end < 3 || end > 12 || reply[end-1] != '\r' {
		return 0, nil, false
	}
	digits := reply[1 : end-1]
	if string(digits) == "-1" {
		return -1, reply[end+1:], true
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, nil, false
		}
		n = n*10 + int(d-'0')
	}
	return n, reply[end+1:], n <= MaxValueBytes
}
