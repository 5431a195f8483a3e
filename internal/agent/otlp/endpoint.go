package otlp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
)

// Endpoint is a collector.
type Endpoint struct {
	GRPC    bool
	Host    string // with port
	Path    string // HTTP: before /v1/traces and /v1/metrics
	TLS     *tls.Config
	Headers map[string]string // secret
	// Dial connects for HTTP; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Files are what an endpoint is read from besides its address. Empty: none.
type Files struct {
	Headers   string // lines "Name: value"
	CA        string // PEM, in place of the system's
	Cert, Key string // PEM, of this client
}

// String names an endpoint without its secrets.
func (e Endpoint) String() string {
	scheme := "http"
	if e.GRPC {
		scheme = "grpc"
	}
	if e.TLS != nil {
		scheme += "s"
	}
	return scheme + "://" + e.Host + e.Path
}

// Parse reads the address of a collector as --otlp has it: grpc:// and http:// without TLS, grpcs:// and https:// with
// it; without a port 4317 or 4318. Without TLS only this host is taken, unless plain says otherwise. An error is one
// line.
func Parse(text string, files Files, plain bool) (Endpoint, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.RawQuery != "" {
		return Endpoint{}, errors.New("otlp: that is no address of a collector; write grpcs://HOST:4317 or " +
			"https://HOST:4318")
	}
	if u.User != nil {
		return Endpoint{}, errors.New("otlp: a password in the address can be seen by others; put a header " +
			"\"Authorization: …\" into the file of --otlp-headers")
	}
	e := Endpoint{Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	port := "4318"
	switch u.Scheme {
	case "grpc", "grpcs":
		e.GRPC, port = true, "4317"
		if e.Path != "" {
			return Endpoint{}, fmt.Errorf("otlp: gRPC has no path; write %s://%s", u.Scheme, u.Host)
		}
	case "http", "https":
	default:
		return Endpoint{}, fmt.Errorf("otlp: the scheme %q is not known; use grpcs://, https://, grpc:// or http://",
			u.Scheme)
	}
	if u.Port() == "" {
		e.Host = net.JoinHostPort(u.Hostname(), port)
	}
	if u.Scheme == "grpcs" || u.Scheme == "https" {
		if e.TLS, err = files.tls(); err != nil {
			return Endpoint{}, err
		}
	} else if !plain && !loopback(u.Hostname()) {
		return Endpoint{}, fmt.Errorf("otlp: %s://%s is not encrypted, and not on this host; use %ss://, or "+
			"--otlp-plain if the network is trusted", u.Scheme, u.Host, u.Scheme)
	}
	e.Headers, err = files.headers()
	return e, err
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (f Files) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("otlp: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("otlp: %s has no certificate in PEM", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("otlp: a client's certificate needs both --otlp-cert and --otlp-key")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("otlp: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// headers reads the file of headers. Their values are in no error.
func (f Files) headers() (map[string]string, error) {
	const most = 16 << 10 // bytes
	if f.Headers == "" {
		return nil, nil
	}
	file, err := os.Open(f.Headers)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	defer file.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(file, most))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("otlp: line %d of %s is no header; write \"Name: value\"", n, f.Headers)
		}
		out[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	return out, lines.Err()
}
