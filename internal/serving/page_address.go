//go:build linux

package serving

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
)

// DefaultListen is where the page is where nobody says another address.
const DefaultListen = "127.0.0.1:7380"

// checkPage says whether the page may be at its address, and reads its certificate.
func (c *checked) checkPage() (err error) {
	if c.certificate, err = c.Page.readCertificate(); err != nil {
		return err
	}
	return usageOf(web.Check(c.pageOptions()))
}

// pageOptions are those of the page itself.
func (c *checked) pageOptions() web.Options {
	return web.Options{
		Listen: c.Listen, HostNames: c.Page.HostNames, Token: c.token, TLS: c.certificate,
		AllowWrites: c.Page.AllowWrites,
	}
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
func (c *checked) takeAddress() (net.Listener, error) {
	l, err := net.Listen("tcp", c.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Usagef("--listen %s: another process listens there, perhaps another slowpath; stop it, "+
			"or give another port", c.Listen)
	case err != nil:
		return nil, cli.Usagef("--listen %s: %w; give HOST:PORT, such as %s", c.Listen, err, DefaultListen)
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if _, got, badAddress := net.SplitHostPort(l.Addr().String()); err == nil && badAddress == nil && port == "0" {
		c.Listen = net.JoinHostPort(host, got)
	}
	return l, nil
}

// url is where a browser finds the page.
func (c *checked) url() string {
	scheme, host := "http", c.Listen
	if c.Page.Cert != "" {
		scheme = "https"
	}
	if name, port, err := net.SplitHostPort(c.Listen); err == nil && (name == "" || net.ParseIP(name).IsUnspecified()) {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	if len(c.Page.HostNames) > 0 {
		host = c.Page.HostNames[0]
	}
	return scheme + "://" + host + "/"
}
