package capture

import (
	"bytes"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// isRequest reports whether bytes begin a request with the name of a command: "*2\r\n$3\r\nGET\r\n".
func isRequest(b []byte) bool {
	if len(b) < 4 || b[0] != '*' || b[1] < '1' || b[1] > '9' {
		return false
	}
	f := resp.NewFramer(true, limits)
	_, _, err := f.Feed(b[:min(len(b), 80)])
	name := f.Arg(0)
	return err == nil && f.Args() > 0 && len(name) > 1 &&
		recording.CommandName(string(name)) != recording.UnknownCommand
}

// startsLikeClient reports whether the first bytes of a connection are those of a client of Redis.
func (c *conn) startsLikeClient(b []byte) bool {
	b = bytes.TrimLeft(b, "\r\n") // a server passes over empty lines
	switch {
	case len(b) == 0:
	case b[0] == 0x16 && len(b) > 1 && b[1] == 3: // a TLS handshake
		if c.node != nil || c.server.address.Port() == 6379 || c.server.address.Port() == 6380 {
			c.a.seen.tls++
		}
		c.abandon()
		return false
	case b[0] == '*' && !isRequest(b) && len(b) >= 16, b[0] != '*' && !isInline(b):
		c.abandon()
		return false
	}
	return true
}

// isInline reports whether bytes begin an inline command, maybe after empty lines, and not a request of HTTP or a mail.
func isInline(b []byte) bool {
	line, _, whole := bytes.Cut(bytes.TrimLeft(b, "\r\n"), []byte("\n"))
	name, rest, _ := strings.Cut(strings.TrimSpace(string(line[:min(len(line), 64)])), " ")
	return whole && recording.CommandName(name) != recording.UnknownCommand && !strings.Contains(rest, "HTTP/")
}
