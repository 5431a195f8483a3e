package protocol

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
)

// Kind tells the errors of the Go libraries apart. What a server replied is known by its first word, in capitals.
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

// serverWord is the first word of an error reply, "" where the text is none: two to twenty capitals, as MOVED, NOAUTH,
// ERR.
func serverWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if len(word) < 2 || len(word) > 20 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}
