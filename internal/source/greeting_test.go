package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// TestStartIsBounded: a peer that hangs is reported within five seconds, by default.
func TestStartIsBounded(t *testing.T) {
	if most := DefaultTimeout + plainTimeout; most >= 5*time.Second {
		t.Errorf("a TLS handshake without answer takes %v", most)
	}
}

// What an error of the first connection means: whether the peer accepted the login and refused a command, whether it
// did not answer at all, or whether its answer is a state that doctor is there for.
func TestErrorsOfTheFirstConnection(t *testing.T) {
	reply := &resp.ServerError{Code: "NOPERM", Message: "this user has no permissions to run the 'info' command"}
	closed := &session.Error{Kind: session.ErrClosed, Err: io.EOF}
	for name, c := range map[string]struct {
		err                      error
		refused, noAnswer, state bool
	}{
		"an error reply":       {err: fmt.Errorf("identifying the server: %w", reply), refused: true},
		"closed on a command":  {err: closed, refused: true},
		"broken after that":    {err: fmt.Errorf("%w: %w", session.ErrBroken, closed), refused: true},
		"closed in the middle": {err: &session.Error{Kind: session.ErrClosed, Err: io.ErrUnexpectedEOF}},
		"wrong password":       {err: &session.Error{Kind: session.ErrWrongPassword, Err: reply}},
		"no reply": {
			err:      &session.Error{Kind: session.ErrTimeout, Err: context.DeadlineExceeded},
			noAnswer: true,
		},
		"no TLS handshake": {
			err:      &target.Error{Kind: target.ErrTimeout, Err: context.DeadlineExceeded},
			noAnswer: true,
		},
		"full queue of a socket": {
			err:      &target.Error{Kind: target.ErrBacklog, Err: errors.New("again")},
			noAnswer: true,
		},
		"nothing listens":           {err: &target.Error{Kind: target.ErrRefused, Err: errors.New("refused")}},
		"plain where TLS was tried": {err: &target.Error{Kind: target.ErrNotTLS}},
		"no room":                   {err: &session.Error{Kind: session.ErrMaxClients, Err: reply}, state: true},
		"loading":                   {err: &session.Error{Kind: session.ErrLoading, Err: reply}, state: true},
	} {
		if refused(c.err) != c.refused || isNoAnswer(c.err) != c.noAnswer || isServerState(c.err) != c.state {
			t.Errorf("%s: refused %v, no answer %v, state %v", name, refused(c.err), isNoAnswer(c.err),
				isServerState(c.err))
		}
	}
}

func TestWindow(t *testing.T) { synctest.Test(t, testWindow) }

func testWindow(t *testing.T) {
	begin := time.Now()
	ctx, cancel := Window(t.Context(), time.Hour)
	defer cancel()
	<-ctx.Done()
	if took := time.Since(begin); took != time.Hour {
		t.Errorf("it ended after %v", took)
	}
	if _, ok := ctx.Deadline(); ok || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("the end of a watch is a deadline: %v", ctx.Err())
	}
	ctx, cancel = Window(t.Context(), 0)
	if ctx.Err() != nil {
		t.Error("a window without end has ended")
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("a canceled window goes on")
	}
}
