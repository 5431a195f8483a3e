package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Errors of targets.
var (
	ErrTarget      = errors.New("not an application that can be profiled")
	ErrNotPprof    = errors.New("not net/http/pprof")
	ErrUnreachable = errors.New("cannot be reached")
)

// Target is an application: an address of net/http/pprof, or a JVM on this host.
type Target struct {
	base *url.URL
	pid  int
}

// PID is that of a JVM; 0 for an address.
func (t Target) PID() int { return t.pid }

// pprofPath is where net/http/pprof is unless a program puts it elsewhere.
const pprofPath = "/debug/pprof/"

// Targets reads what a command line names: HOST:PORT, or a URL, whose path is /debug/pprof/ unless it has another; or
// the pid of a JVM. Its errors match ErrTarget and quote no password.
func Targets(texts []string) ([]Target, error) {
	if len(texts) > maxTargets {
		return nil, fmt.Errorf("%w: %d are named, and at most %d are watched at a time", ErrTarget, len(texts),
			maxTargets)
	}
	var out []Target
	seen := map[string]bool{}
	for _, text := range texts {
		t, err := parseTarget(text)
		if err != nil {
			return nil, err
		}
		if seen[t.String()] {
			return nil, fmt.Errorf("%w: %s is named twice", ErrTarget, t)
		}
		seen[t.String()] = true
		out = append(out, t)
	}
	return out, nil
}

const write = "write HOST:PORT or http://HOST:PORT/debug/pprof/, or the pid of a JVM"

func parseTarget(text string) (Target, error) {
	if pid, err := strconv.Atoi(text); err == nil && pid > 0 {
		return Target{pid: pid}, nil
	}
	if !strings.Contains(text, "://") {
		if strings.ContainsAny(text, "/?#@") {
			return Target{}, fmt.Errorf("%w: a path or password needs a URL: %s", ErrTarget, write)
		}
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, fmt.Errorf("%w: the URL does not parse: %s", ErrTarget, write) // its error quotes the password
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return Target{}, fmt.Errorf("%w: the scheme %.20q is not http or https: %s", ErrTarget, u.Scheme, write)
	}
	if !utf8.ValidString(u.Host) {
		return Target{}, fmt.Errorf("%w: the host is no text: %s", ErrTarget, write)
	}
	if _, err := url.Parse(u.String()); err != nil { // the zone of an IPv6 address is not in ASCII
		return Target{}, fmt.Errorf("%w: the host cannot be written in a URL: %s", ErrTarget, write)
	}
	port, err := strconv.Atoi(u.Port())
	if u.Hostname() == "" || u.Port() != "" && (err != nil || port < 1 || port > 65535) || u.Port() == "" &&
		u.Scheme == "http" && !strings.Contains(text, "/debug/") {
		return Target{}, fmt.Errorf("%w: the address lacks a host or a port: %s", ErrTarget, write)
	}
	// It may be the address of one profile, copied from a browser.
	dir, found := strings.TrimRight(u.Path, "/"), false
	if dir, _, found = strings.Cut(dir, "/debug/pprof"); found || dir == "" {
		dir += strings.TrimRight(pprofPath, "/")
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = dir+"/", "", "", ""
	return Target{base: u}, nil
}

// hostPort has the port also where the URL leaves it to its scheme.
func (t Target) hostPort() string {
	port := t.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[t.base.Scheme]
	}
	return net.JoinHostPort(t.base.Hostname(), port)
}

// String is the address without the password.
func (t Target) String() string {
	if t.base == nil {
		return strconv.Itoa(t.pid)
	}
	u := *t.base
	u.User = nil
	return u.String()
}

func (t Target) open(ctx context.Context, o Options) (app, error) {
	if t.base == nil {
		return openJVM(ctx, o, t.pid)
	}
	return openGo(ctx, o, t)
}
