package notify

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
)

// Format is how a receiver wants a message.
type Format string

// Formats.
const (
	JSON         Format = "json"         // slowpath.notification/v1 (docs/json.md)
	Slack        Format = "slack"        // an incoming webhook
	Alertmanager Format = "alertmanager" // POST /api/v2/alerts
)

// Receiver is where messages go.
type Receiver struct {
	Format Format
	URL    *url.URL
	Header http.Header // with what is secret
}

// String names a receiver without its secrets: the path and the user of a webhook's address are some.
func (r Receiver) String() string {
	return fmt.Sprintf("%s at %s://%s", r.Format, r.URL.Scheme, r.URL.Host)
}

// maxFile bounds a file of a receiver, in bytes.
const maxFile = 16 << 10

// Parse reads a receiver as --notify has it: the address of a webhook (https://…), with the format before it
// (slack+https://…, alertmanager+https://…, json+https://…) where the address does not show it, or @FILE: the address is
// the first line of the file, and each line after it a header ("Authorization: Bearer …"). http:// is refused but to
// this host, unless plain says so. An error is one line, and shows no secret.
func Parse(text string, plain bool) (Receiver, error) {
	r := Receiver{Header: http.Header{}}
	if file, ok := strings.CutPrefix(text, "@"); ok {
		address, header, err := readFile(file)
		if err != nil {
			return Receiver{}, err
		}
		text, r.Header = address, header
	}
	if format, rest, ok := strings.Cut(text, "+"); ok && !strings.Contains(format, ":") {
		r.Format, text = Format(format), rest
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" {
		return Receiver{}, errors.New("notify: that is no address of a webhook; write https://HOST/PATH, " +
			"slack+https://…, alertmanager+https://HOST:9093, or @FILE with it")
	}
	if r.URL = u; u.Scheme != "https" && u.Scheme != "http" {
		return Receiver{}, fmt.Errorf("notify: a webhook at %s has the scheme %q; use https://", u.Host, u.Scheme)
	}
	if u.Scheme == "http" && !plain && !Loopback(u.Hostname()) {
		return Receiver{}, fmt.Errorf("notify: http://%s is not encrypted, and not on this host; use https://, or "+
			"--notify-plain if the network is trusted", u.Host)
	}
	return r, r.settle()
}

// settle finds the format, and completes the address.
func (r *Receiver) settle() error {
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case r.Format != "":
	case r.URL.Hostname() == "hooks.slack.com":
		r.Format = Slack
	case strings.HasSuffix(path, "/api/v2/alerts"):
		r.Format = Alertmanager
	default:
		r.Format = JSON
	}
	switch r.Format {
	case JSON, Slack:
	case Alertmanager:
		if !strings.HasSuffix(path, "/api/v2/alerts") {
			r.URL.Path = path + "/api/v2/alerts"
		}
	default:
		return fmt.Errorf("notify: the format %q is not known; use json+, slack+ or alertmanager+", r.Format)
	}
	if r.URL.User != nil { // in a header it gets into no message of an error
		password, _ := r.URL.User.Password()
		req := http.Request{Header: r.Header}
		req.SetBasicAuth(r.URL.User.Username(), password)
		r.URL.User = nil
	}
	return nil
}

func readFile(name string) (address string, header http.Header, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", nil, fmt.Errorf("notify: %w", err)
	}
	defer f.Close()
	first, rest := bufio.NewReader(io.LimitReader(f, maxFile)), ""
	address, err = first.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || strings.TrimSpace(address) == "" {
		return "", nil, fmt.Errorf("notify: %s is to have the address of a webhook in its first line", name)
	}
	b, _ := io.ReadAll(first)
	rest = strings.TrimSpace(string(b))
	if rest == "" {
		return strings.TrimSpace(address), http.Header{}, nil
	}
	lines := textproto.NewReader(bufio.NewReader(strings.NewReader(rest + "\r\n\r\n")))
	mime, err := lines.ReadMIMEHeader()
	if err != nil {
		return "", nil, fmt.Errorf("notify: a line after the first of %s is no header; write \"Name: value\"", name)
	}
	return strings.TrimSpace(address), http.Header(mime), nil
}

// Loopback reports whether a host is this one, by its address or as localhost.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
