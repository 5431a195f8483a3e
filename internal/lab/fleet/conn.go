package fleet

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// conn speaks just enough RESP2 to start a server: the lab must not depend on the code that it tests.
type conn struct {
	net.Conn
	r        *bufio.Reader
	patience time.Duration // for one command and its reply; 0: replyTimeout
}

// replyTimeout bounds one command and its reply; a server that starts is asked again after it.
const replyTimeout = 5 * time.Second

// refusal is an error reply of the server.
type refusal string

func (r refusal) Error() string { return string(r) }

// dial connects to a server: by its Unix socket when it is in a namespace, else by TCP, with TLS if it has that.
func (i Info) dial(ctx context.Context) (*conn, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	if i.NetNS != "" {
		c, err := d.DialContext(ctx, "unix", i.Socket)
		return wrapConn(c, err)
	}
	if !i.TLS {
		c, err := d.DialContext(ctx, "tcp", i.Addr)
		return wrapConn(c, err)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(i.CACert)
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the CA %s: %w", i.CACert, err)
	}
	t := tls.Dialer{NetDialer: &d, Config: &tls.Config{RootCAs: roots}}
	c, err := t.DialContext(ctx, "tcp", i.Addr)
	return wrapConn(c, err)
}

func wrapConn(c net.Conn, err error) (*conn, error) {
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReader(c)}, nil
}

// ask sends one command and reads its reply: a string, int64, []any or nil. An error reply is a refusal.
func (c *conn) ask(ctx context.Context, args ...string) (any, error) {
	deadline := time.Now().Add(cmp.Or(c.patience, replyTimeout))
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return nil, err
	}
	return c.reply(0)
}

// Bounds of a reply, so that another service on the port does no harm.
const (
	maxBulkBytes = 64 << 20
	maxElements  = 1 << 20
	maxDepth     = 8
)

var errNotRESP = errors.New("the reply is not RESP2: another service is on the port")

func (c *conn) reply(depth int) (any, error) {
	raw, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	line := strings.TrimSuffix(string(raw), "\r\n")
	if line == "" || depth > maxDepth {
		return nil, errNotRESP
	}
	body := line[1:]
	switch line[0] {
	case '+':
		return body, nil
	case '-':
		return nil, refusal(body)
	}
	n, err := strconv.ParseInt(body, 10, 64)
	switch {
	case err != nil:
		return nil, errNotRESP
	case line[0] == ':':
		return n, nil
	case n == -1:
		return nil, nil
	case line[0] == '$' && n >= 0 && n <= maxBulkBytes:
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, bulk); err != nil {
			return nil, err
		}
		return string(bulk[:n]), nil
	case line[0] == '*' && n >= 0 && n <= maxElements:
		return c.array(int(n), depth)
	}
	return nil, errNotRESP
}

// array keeps a refusal inside of an array as an element.
func (c *conn) array(n, depth int) (any, error) {
	var out []any
	for range n {
		v, err := c.reply(depth + 1)
		var r refusal
		if errors.As(err, &r) {
			v = r
		} else if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
