package target

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Phases has the time of each phase of a dial. A phase that did not take place is 0: DNS for a literal IP, DNS and TLS
// for a plain unix socket. If a dial failed, the last phase that is not 0 failed.
type Phases struct {
	DNS     time.Duration // the resolver, as configured on this host (so with /etc/hosts and any cache)
	Connect time.Duration // from the first SYN until connected, with the addresses that failed before
	TLS     time.Duration // the handshake, always a full one: no session is resumed
}

// Dialer dials with a resolver of its own. The zero value is what Dial uses.
type Dialer struct {
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil is the system's resolver
}

// Dial connects to t and finishes the TLS handshake if there is one. The context's deadline and cancellation bound the
// whole; there is no other timeout. Errors are *Error and match one of the Err… values; ErrBadTarget and ErrCertFile
// are found before anything is sent. After an error the phases up to it are valid.
func Dial(ctx context.Context, t Target) (*Conn, Phases, error) { return Dialer{}.Dial(ctx, t) }

// Dial is the package's Dial with this resolver.
func (d Dialer) Dial(ctx context.Context, t Target) (*Conn, Phases, error) {
	var phases Phases
	if err := t.check(); err != nil {
		return nil, phases, newError(t, nil, err.Error(), "", err)
	}
	var config *tls.Config
	if t.TLS != nil {
		var err error
		if config, err = t.TLS.config(t); err != nil {
			return nil, phases, err
		}
	}
	start := time.Now()
	endpoints, err := d.resolve(ctx, t)
	if err != nil {
		phases.DNS = time.Since(start)
		return nil, phases, explainLookup(t, err, phases.DNS)
	}
	if t.resolves() {
		phases.DNS = time.Since(start)
	}

	start = time.Now()
	socket, err := connect(ctx, t, endpoints)
	phases.Connect = time.Since(start)
	if err != nil {
		return nil, phases, err
	}

	conn, err := newConn(t, socket)
	if err == nil && config != nil {
		start = time.Now()
		err = conn.handshake(ctx, config)
		phases.TLS = time.Since(start)
		if err != nil {
			err = explainHandshake(t, err, phases.TLS)
		}
	}
	if err != nil {
		socket.Close()
		return nil, phases, err
	}
	return conn, phases, nil
}

// check catches a Target that was built, not parsed: a node whose address could not be read.
func (t Target) check() error {
	switch {
	case t.Sentinel != "":
		return badTarget("this does not ask sentinels; name the server: redis-cli -p 26379 SENTINEL " +
			"GET-MASTER-ADDR-BY-NAME " + t.Sentinel)
	case t.Network == "unix" && t.Path != "":
		return nil
	case t.Network != "tcp":
		return badTarget(`the network is "tcp" or "unix" and has an address`)
	case t.Host == "":
		return badTarget("the host is empty")
	case t.Port < 1 || t.Port > 65535:
		return badTarget("the port is a number from 1 to 65535")
	}
	return nil
}

// Resolve gives the addresses that a dial of a TCP target would try, in this order, without dialling. Errors are
// *Error.
func Resolve(ctx context.Context, t Target) ([]netip.AddrPort, error) {
	if err := t.check(); err != nil {
		return nil, newError(t, nil, err.Error(), "", err)
	}
	start := time.Now()
	endpoints, err := Dialer{}.resolve(ctx, t)
	if err != nil {
		return nil, explainLookup(t, err, time.Since(start))
	}
	var list []netip.AddrPort
	for _, e := range endpoints {
		a, err := netip.ParseAddrPort(e)
		if err != nil {
			return nil, newError(t, nil, fmt.Sprintf("%q is no TCP address", e), "", err)
		}
		list = append(list, a)
	}
	return list, nil
}

// resolves tells whether a dial asks a resolver.
func (t Target) resolves() bool {
	_, err := netip.ParseAddr(t.Host)
	return t.Network == "tcp" && err != nil
}

// resolve gives the addresses to connect to, in the resolver's order (RFC 6724).
func (d Dialer) resolve(ctx context.Context, t Target) ([]string, error) {
	if !t.resolves() {
		return []string{t.Addr()}, nil
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	ips, err := lookup(ctx, t.Host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: t.Host, IsNotFound: true}
	}
	endpoints := make([]string, len(ips))
	for i, ip := range ips {
		endpoints[i] = netip.AddrPortFrom(ip.Unmap(), uint16(t.Port)).String()
	}
	return endpoints, nil
}

// connect tries one endpoint after the other, never two at once: else the measured time would have no clear meaning.
func connect(ctx context.Context, t Target, endpoints []string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(network, _ string, raw syscall.RawConn) error {
		if strings.HasPrefix(network, "tcp") {
			// Before connect, so that the first segment has its time too.
			_ = raw.Control(stampArrivals)
			tellCookie(ctx, raw)
		}
		return nil
	}}
	dial := dialer.DialContext
	if by, ok := ctx.Value(dialKey{}).(DialFunc); ok {
		dial = by
	}
	var failures []failure
	for i, endpoint := range endpoints {
		start := time.Now()
		attempt, cancel := shareOf(ctx, len(endpoints)-i)
		socket, err := dial(attempt, t.Network, endpoint)
		cancel()
		if err == nil {
			return socket, nil
		}
		failures = append(failures, failure{endpoint, err, time.Since(start)})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, explainConnect(t, failures)
}

// DialFunc opens a stream, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

type dialKey struct{}

// WithDial gives a context with which dials open their streams by a function: those of a test are in memory.
func WithDial(ctx context.Context, dial DialFunc) context.Context {
	return context.WithValue(ctx, dialKey{}, dial)
}

// cookieKey is the context's key for the function of WithCookies.
type cookieKey struct{}

// WithCookies gives a context with which dials call a function with the cookie (SO_COOKIE) of each TCP socket before it
// connects. A cookie is of one socket of this kernel, whatever namespaces and addresses are between its two ends.
// Systems without cookies never call it.
func WithCookies(ctx context.Context, made func(cookie uint64)) context.Context {
	return context.WithValue(ctx, cookieKey{}, made)
}

func tellCookie(ctx context.Context, raw syscall.RawConn) {
	made, _ := ctx.Value(cookieKey{}).(func(uint64))
	if made == nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if cookie, ok := cookieOf(fd); ok {
			made(cookie)
		}
	})
}

// shareOf gives each remaining address an equal part of the time, so that a first one which drops packets does not use
// up all of it (as net.partialDeadline).
func shareOf(ctx context.Context, remaining int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || remaining == 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(remaining))
}
