package engine

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

func TestErrorKind(t *testing.T) {
	dialing := func(kind, err error) error {
		return &target.Error{Addr: "h:1", Kind: kind, Text: "connecting to h:1: x", Err: err}
	}
	for _, tt := range []struct {
		err error
		fix bool
		is  string
	}{
		{io.EOF, false, "closed by the server"},
		{syscall.ECONNRESET, false, "connection reset by peer"},
		{errTimeout, true, "timeout"},
		{fmt.Errorf("%w: \"x\" where a reply was expected", resp.ErrProtocol), false, "no RESP"},
		{
			dialing(nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}), true,
			"connecting: no free local port",
		},
		{dialing(nil, os.NewSyscallError("socket", syscall.EMFILE)), true, "connecting: too many open files"},
		{dialing(target.ErrRefused, syscall.ECONNREFUSED), true, "connecting: refused"},
		{dialing(target.ErrTimeout, context.DeadlineExceeded), true, "connecting: timeout"},
		{dialing(nil, syscall.ENOBUFS), false, "connecting: no buffer space available"},
		{
			&session.Error{Addr: "h:1", Kind: session.ErrTimeout, Text: "after 4.9s", Err: context.DeadlineExceeded},
			true,
			"connecting: no reply to the login",
		},
		{
			&session.Error{Addr: "h:1", Kind: session.ErrMaxClients, Text: "maxclients", Err: io.EOF}, true,
			"connecting: maxclients reached",
		},
		{
			&session.Error{Addr: "h:1", Kind: session.ErrClosed, Text: "x", Err: io.EOF}, false,
			"connecting: closed by the server",
		},
		{fmt.Errorf("%s", strings.Repeat("x", 1000)), false, strings.Repeat("x", 120)},
	} {
		kind := errorKind(tt.err)
		if kind != tt.is || (Fix(kind) != "") != tt.fix {
			t.Errorf("%v is %q with the fix %q, want %q", tt.err, kind, Fix(kind), tt.is)
		}
	}
}

// TestKindsAreBounded: a server that makes up error codes does not fill the memory.
func TestKindsAreBounded(t *testing.T) {
	m := map[string]int64{}
	for i := range 1000 {
		countKind(m, fmt.Sprint("CODE", i), 1)
	}
	if len(m) > maxKinds+1 || m[otherKinds] != 1000-maxKinds {
		t.Errorf("%d kinds, %d others", len(m), m[otherKinds])
	}
}
