package serving

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
	"slowpath/internal/source/hostfs"
)

// DefaultListen is where the page is where nobody says another address.
const DefaultListen = "127.0.0.1:7380"

// Page are the flags of the page.
type Page struct {
	Listen, TokenFile, Cert, Key string
	HostNames                    []string
	AllowWrites                  bool
}

// options are who may see the page, without its certificate.
func (p *Page) options() (o web.Options, err error) {
	o = web.Options{Listen: p.Listen, HostNames: p.HostNames, AllowWrites: p.AllowWrites}
	if p.TokenFile != "" {
		o.Token, err = readSecret("token-file", p.TokenFile)
	}
	return o, err
}

// check says whether the page may be at its address, and reads its certificate.
func (p *Page) check(o *web.Options) (err error) {
	if o.TLS, err = p.readCertificate(); err != nil {
		return err
	}
	return usageOf(web.Check(*o))
}

// readCertificate reads that of the page; nil: there is none.
func (p *Page) readCertificate() (*tls.Config, error) {
	switch {
	case p.Cert == "" && p.Key == "":
		return nil, nil
	case p.Cert == "" || p.Key == "":
		return nil, cli.Usagef("--tls-cert and --tls-key go together: give both, or none")
	}
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, cli.Usagef("--tls-cert %s: %w; give a certificate and its key in PEM", p.Cert, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// takeAddress listens for the page, and puts the port that it got in the place of 0, which is any.
func takeAddress(o *web.Options) (net.Listener, error) {
	l, err := net.Listen("tcp", o.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Usagef("--listen %s: another process listens there, perhaps another slowpath; stop it, "+
			"or give another port", o.Listen)
	case err != nil:
		return nil, cli.Usagef("--listen %s: %w; give HOST:PORT, such as %s", o.Listen, err, DefaultListen)
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if _, got, badAddress := net.SplitHostPort(l.Addr().String()); err == nil && badAddress == nil && port == "0" {
		o.Listen = net.JoinHostPort(host, got)
	}
	return l, nil
}

// addressOf is where a browser finds the page.
func addressOf(o web.Options) string {
	scheme, host := "http", o.Listen
	if o.TLS != nil {
		scheme = "https"
	}
	if name, port, err := net.SplitHostPort(o.Listen); err == nil && (name == "" || net.ParseIP(name).IsUnspecified()) {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	if len(o.HostNames) > 0 {
		host = o.HostNames[0]
	}
	return scheme + "://" + host + "/"
}

func usageOf(err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(err)
}

// mostSecretBytes bounds a file that holds a password or a token.
const mostSecretBytes = 4 << 10

// readSecret reads a password or token: the one line of a file.
func readSecret(flag, path string) (string, error) {
	text, err := hostfs.ReadRegular(hostfs.Root{}, path, mostSecretBytes)
	if err != nil {
		return "", cli.Usagef("--%s: %w", flag, err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || strings.TrimSpace(rest) != "" {
		return "", cli.Usagef("--%s %s: give a file of one line", flag, path)
	}
	return line, nil
}
