package target

import (
	"errors"
	"fmt"
	"strings"
)

// Kinds of errors, to be matched with errors.Is. The text of an error adds the address, the detail and the fix.
var (
	ErrBadTarget = errors.New("bad target") // a usage error: the text or the flags, before anything was dialed

	ErrRefused      = errors.New("connection refused")
	ErrNameNotFound = errors.New("name not found")
	ErrTimeout      = errors.New("timeout")
	ErrUnreachable  = errors.New("unreachable")
	ErrNoSocket     = errors.New("no such socket")
	ErrBacklog      = errors.New("listen backlog full")
	ErrPermission   = errors.New("permission denied")

	ErrNotTLS           = errors.New("the server does not speak TLS here")
	ErrUnknownAuthority = errors.New("certificate signed by an unknown authority")
	ErrHostname         = errors.New("certificate is for another name")
	ErrCertificate      = errors.New("invalid server certificate")
	ErrClientCert       = errors.New("client certificate required or refused")
	ErrCertFile         = errors.New("unusable certificate file")

	ErrClosedEarly = errors.New("the server closed the connection before its first reply")

	ErrNotSupported = errors.New("not supported")
)

func badTarget(what string) error { return fmt.Errorf("%w: %s", ErrBadTarget, what) }

// Error is a failed dial. It prints on one line and never holds a credential.
type Error struct {
	Addr string // of the target, as Addr prints it
	Kind error  // one of the Err… values, or nil if none fits
	Text string // what happened and, if known, how to fix it
	Err  error  // of the system; of several addresses, all
}

func (e *Error) Error() string { return "connecting to " + e.Addr + ": " + e.Text }

// Unwrap lets errors.Is find both the Kind and the system's own error (context.Canceled, syscall.ECONNREFUSED, …).
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// Timeout makes Error usable where a net.Error is asked for its timeout.
func (e *Error) Timeout() bool { return errors.Is(e.Kind, ErrTimeout) }

// newError makes the text "kind: detail; fix", leaving out what is empty.
func newError(t Target, kind error, detail, fix string, cause error) *Error {
	var text strings.Builder
	if kind != nil {
		text.WriteString(kind.Error())
	}
	if detail != "" {
		if text.Len() > 0 {
			text.WriteString(": ")
		}
		text.WriteString(detail)
	}
	if fix != "" {
		text.WriteString("; " + fix)
	}
	return &Error{Addr: t.Addr(), Kind: kind, Text: text.String(), Err: cause}
}
