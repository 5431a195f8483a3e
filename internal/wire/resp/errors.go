package resp

import (
	"errors"
	"fmt"
)

// Errors of a reply that does not follow the protocol or exceeds a limit. The [Reader] returns the same error from then
// on, since it cannot find the next reply: the connection must be closed.
var (
	ErrProtocol        = errors.New("broken Redis protocol")
	ErrTooLarge        = errors.New("reply too large")
	ErrTooDeep         = errors.New("reply nested too deeply")
	ErrTooManyElements = errors.New("reply with too many elements")
	// ErrNotRedis is matched by a [NotRedisError], which is an [ErrProtocol] too.
	ErrNotRedis = errors.New("not a Redis server")
)

// NotRedisError says what the peer speaks instead of the Redis protocol. It matches [ErrNotRedis] and [ErrProtocol].
type NotRedisError struct {
	Hint string // a whole clause, with the fix if one is known
}

func (e *NotRedisError) Error() string { return e.Hint }

// Is makes the error match its two sentinels.
func (e *NotRedisError) Is(target error) bool { return target == ErrNotRedis || target == ErrProtocol }

// ServerError is an error reply.
type ServerError struct {
	Code    string // the first word if it is in capitals, such as ERR, MOVED, NOAUTH, LOADING; else empty
	Message string // what follows the code
}

func (e *ServerError) Error() string {
	switch {
	case e.Code == "":
		return e.Message
	case e.Message == "":
		return e.Code
	}
	return e.Code + " " + e.Message
}

// newServerError splits the text of an error reply.
func newServerError(text []byte) *ServerError {
	code, rest := splitCode(text)
	return &ServerError{Code: string(code), Message: string(rest)}
}

// splitCode splits off the error code. By the convention of the protocol it is the first word, in capitals; scripts and
// modules may leave it out.
func splitCode(text []byte) (code, rest []byte) {
	for i, c := range text {
		isCode := c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-')
		if c == ' ' && i > 0 {
			return text[:i], text[i+1:]
		}
		if !isCode {
			return nil, text
		}
	}
	return text, nil
}

// protocolError wraps ErrProtocol with what was found and where in the reply.
func (r *Reader) protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s at byte %d of the reply", ErrProtocol, fmt.Sprintf(format, args...), r.replyBytes)
}
