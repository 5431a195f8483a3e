package workload

import (
	"errors"
	"fmt"
	"strconv"
)

// split splits a command line into arguments as redis-cli does (sdssplitargs): "double quotes" with \n \r \t \b \a \xHH
// and escaped characters, 'single quotes' with \' only, and nothing but white space after a closing quote. A `;` that
// is an argument of its own, or ends one outside quotes, ends a command: one list of arguments per command.
func split(line string) ([][]string, error) {
	var all [][]string
	var args []string
	end := func() error {
		if len(args) == 0 {
			return fmt.Errorf("%q: an empty command", line)
		}
		all, args = append(all, args), nil
		return nil
	}
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		switch {
		case i == len(line):
			if len(args) == 0 && len(all) > 0 {
				return all, nil // a `;` at the end
			}
			return all, end()
		case line[i] == ';':
			if err := end(); err != nil {
				return nil, err
			}
			i++
			continue
		}
		arg, n, err := word(line[i:])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		args = append(args, arg)
		i += n
	}
}

var errUnbalanced = errors.New("quotes do not match; quote as in redis-cli")

// word reads one argument at the start of a text, and gives its length in the text.
func word(s string) (string, int, error) {
	var out []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isSpace(c) || c == ';':
			return string(out), i, nil
		case c == '"':
			body, n, ok := doubleQuoted(s[i:])
			if !ok || !endsWord(s[i+n:]) {
				return "", 0, errUnbalanced
			}
			return string(append(out, body...)), i + n, nil
		case c == '\'':
			body, n, ok := singleQuoted(s[i:])
			if !ok || !endsWord(s[i+n:]) {
				return "", 0, errUnbalanced
			}
			return string(append(out, body...)), i + n, nil
		default:
			out = append(out, c)
		}
	}
	return string(out), len(s), nil
}

// endsWord: after a closing quote there must be a space or the end of a command.
func endsWord(rest string) bool { return rest == "" || isSpace(rest[0]) || rest[0] == ';' }

// doubleQuoted reads `"…"` with its escapes, which are those of MONITOR too (sdscatrepr), and gives its length in the
// text.
func doubleQuoted(s string) (body []byte, n int, ok bool) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return body, i + 1, true
		case s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' && isHex(s[i+2]) && isHex(s[i+3]):
			b, _ := strconv.ParseUint(s[i+2:i+4], 16, 8) // two hex digits
			body = append(body, byte(b))
			i += 3
		case s[i] == '\\' && i+1 < len(s):
			i++
			body = append(body, unescaped(s[i]))
		default:
			body = append(body, s[i])
		}
	}
	return nil, 0, false
}

func singleQuoted(s string) (body []byte, n int, ok bool) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\'':
			return body, i + 1, true
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '\'':
			i++
			body = append(body, '\'')
		default:
			body = append(body, s[i])
		}
	}
	return nil, 0, false
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
