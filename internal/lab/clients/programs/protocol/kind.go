package protocol

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
)

// Kind returns the kind of an error of a Go library. That of an error reply is its first word, in capitals.
func Kind(err error) string {
	var timeout interface{ Timeout() bool }
	var onNet *net.OpError
	text := err.Error()
	switch {
	case strings.Contains(text, "pool timeout"), strings.Contains(text, "pool exhausted"): // go-redis, redigo
		return KindPoolTimeout
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) &&
		timeout.Timeout():
		return KindTimeout
	case errors.As(err, &onNet), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed):
		return KindConnection
	}
	if word := serverWord(text); word != "" {
		return word
	}
	return KindOther
}

// serverWord returns the first word of an error reply, which is two to twenty capitals: MOVED, NOAUTH, ERR. It returns
// "" for another text.
func serverWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if len(word) < 2 || len(word) > 20 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}
