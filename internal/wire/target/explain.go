package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"
)

// failure is one address that did not connect.
type failure struct {
	endpoint string
	err      error
	after    time.Duration
}

// explainLookup describes an error of the resolver, without the server address and the search list of net.DNSError.
func explainLookup(t Target, err error, after time.Duration) *Error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return newError(t, nil, "canceled", "", err)
	case timedOut(err):
		return newError(t, ErrTimeout, fmt.Sprintf("no answer from DNS for %q in %v", t.Host, round(after)),
			"check the resolver of this host, or give the IP", err)
	case errors.As(err, &dns) && dns.IsNotFound:
		return newError(t, ErrNameNotFound, fmt.Sprintf("DNS has no address for %q", t.Host),
			"check the spelling of the host, or give the IP", err)
	case errors.As(err, &dns):
		return newError(t, nil, fmt.Sprintf("resolving %q: %s", t.Host, dns.Err), "check the resolver of this host, "+
			"or give the IP", err)
	}
	return newError(t, nil, fmt.Sprintf("resolving %q: %v", t.Host, err), "", err)
}

// explainConnect describes the errors of all addresses of a host in one line. All of their kinds and errors can be
// matched; Kind and the fix are those of the last one, which is mostly the intended IPv4 address.
func explainConnect(t Target, failures []failure) *Error {
	last := explainAttempt(t, failures[len(failures)-1])
	if len(failures) == 1 {
		return last
	}
	var texts []string
	var all []error
	for _, f := range failures {
		e := explainAttempt(t, f)
		all = append(all, e)
		reason := innermost(f.err).Error()
		if e.Kind != nil {
			reason = e.Kind.Error()
		}
		texts = append(texts, f.endpoint+" "+reason)
	}
	_, fix, _ := strings.Cut(last.Text, "; ")
	if fix != "" {
		fix = "; " + fix
	}
	return &Error{Addr: t.Addr(), Kind: last.Kind, Text: strings.Join(texts, ", ") + fix, Err: errors.Join(all...)}
}

func explainAttempt(t Target, f failure) *Error {
	onSocket := t.Network == "unix"
	switch {
	case errors.Is(f.err, context.Canceled):
		return newError(t, nil, "canceled", "", f.err)
	case onSocket && errors.Is(f.err, syscall.EAGAIN): // which calls itself a timeout
		return newError(t, ErrBacklog, "connections are queued on "+t.Path+" and the server accepts none",
			"the server hangs or is very busy; or raise its tcp-backlog", f.err)
	case timedOut(f.err):
		return newError(t, ErrTimeout, fmt.Sprintf("no answer in %v", round(f.after)),
			"check the address, and for a firewall that drops packets", f.err)
	case errors.Is(f.err, syscall.ECONNREFUSED) && onSocket:
		return newError(t, ErrRefused, "the socket is there but nothing listens on it",
			"check that the server runs, and -s", f.err)
	case errors.Is(f.err, syscall.ECONNREFUSED):
		return newError(t, ErrRefused, "nothing listens on "+f.endpoint, "check that the server runs, -h and -p", f.err)
	case onSocket && errors.Is(f.err, fs.ErrNotExist):
		return newError(t, ErrNoSocket, t.Path, "check -s and the server's unixsocket setting", f.err)
	case errors.Is(f.err, fs.ErrPermission) && onSocket:
		return newError(t, ErrPermission, "for the socket "+t.Path, "check the server's unixsocketperm, or run as "+
			"its user", f.err)
	case errors.Is(f.err, fs.ErrPermission):
		return newError(t, ErrPermission, innermost(f.err).Error(), "a local firewall rejects the connection", f.err)
	case errors.Is(f.err, syscall.EINVAL) && onSocket:
		return newError(t, ErrBadTarget, fmt.Sprintf("the path of the socket has %d bytes, the kernel takes at most "+
			"107", len(t.Path)),
			"use a shorter or a relative path", f.err)
	case errors.Is(f.err, syscall.EMFILE):
		return newError(t, nil, "too many open files", "raise the limit: ulimit -n 10000; or use fewer connections",
			f.err)
	case errors.Is(f.err, syscall.ECONNRESET):
		return newError(t, nil, f.endpoint+" accepts and resets the connection",
			"a proxy or load balancer without a live server behind it does this", f.err)
	case errors.Is(f.err, syscall.EHOSTUNREACH) || errors.Is(f.err, syscall.ENETUNREACH):
		return newError(t, ErrUnreachable, innermost(f.err).Error()+" to "+f.endpoint,
			"check the address and the routes of this host", f.err)
	}
	return newError(t, nil, innermost(f.err).Error(), "", f.err)
}

// timedOut is true for a deadline of the context, of the socket, and for the kernel's own ETIMEDOUT.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// innermost strips "dial tcp 127.0.0.1:1: connect: ", which the line already has.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// round keeps about three digits of a duration in an error text.
func round(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Nanosecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// hungUp is true if the other side ended the stream, orderly or not.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}
