package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// Opening has the time of each phase of an Open. A phase that did not take place is 0.
type Opening struct {
	Start     time.Time
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	Handshake time.Duration // from the first command (AUTH, HELLO, SELECT, CLIENT SETNAME, or PING) to the last reply
	// segments retransmitted while connecting: SYNs, and with TLS those of its handshake; 0 if not known
	SynRetrans int64
}

// step is one command of the handshake.
type step struct {
	args     []string
	optional bool // a refusal is no error
}

// Open connects to t and logs in. The context bounds all of it; the handshake takes DefaultTimeout at most. All
// commands of the handshake are sent in one write, AUTH first. If there are none, PING is sent, since only a reply
// shows that the peer is a Redis that serves. A server that is loading, busy or without its master gives a session,
// too: INFO works there.
//
// After an error the Opening has the phases up to it. Errors are those of target.Dial, *Error, or resp's.
func Open(ctx context.Context, t target.Target, name string) (*Session, Opening, error) {
	s, opening, err := open(ctx, t, name)
	if errors.Is(err, errNameRefused) {
		// Proxies such as twemproxy close the connection on a command that they do not know.
		if s, opening, err = open(ctx, t, ""); s != nil {
			s.NameRefused = true
		}
	}
	return s, opening, err
}

var errNameRefused = errors.New("closed at CLIENT SETNAME")

func open(ctx context.Context, t target.Target, name string) (*Session, Opening, error) {
	opening := Opening{Start: time.Now()}
	conn, phases, err := target.Dial(ctx, t)
	opening.DNS, opening.Connect, opening.TLS = phases.DNS, phases.Connect, phases.TLS
	if err != nil {
		return nil, opening, err
	}
	if info, err := conn.TCPInfo(); err == nil {
		opening.SynRetrans = int64(info.TotalRetrans)
	}
	s := newSession(conn)
	start := time.Now()
	err = s.login(ctx, t, name)
	opening.Handshake = time.Since(start)
	if err != nil {
		conn.Close()
		return nil, opening, err
	}
	return s, opening, nil
}

// handshake lists the commands of the login.
func handshake(t target.Target, name string) []step {
	var steps []step
	if t.Password != "" {
		auth := []string{"AUTH", t.Password}
		if t.User != "" {
			auth = []string{"AUTH", t.User, t.Password}
		}
		steps = append(steps, step{args: auth})
	}
	if t.Protocol == 3 {
		steps = append(steps, step{args: []string{"HELLO", "3"}})
	}
	if t.DB != 0 {
		steps = append(steps, step{args: []string{"SELECT", strconv.Itoa(t.DB)}})
	}
	if name != "" {
		steps = append(steps, step{args: []string{"CLIENT", "SETNAME", name}, optional: true})
	}
	if len(steps) == 0 {
		steps = append(steps, step{args: []string{"PING"}, optional: true})
	}
	return steps
}

// Login is the handshake of Open as bytes on the wire, and its number of replies, for a caller that opens its own
// connections. Open interprets error replies.
func Login(t target.Target, name string) (request []byte, replies int) {
	steps := handshake(t, name)
	for _, st := range steps {
		request = resp.AppendCommand(request, st.args...)
	}
	return request, len(steps)
}

func (s *Session) login(ctx context.Context, t target.Target, name string) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	steps := handshake(t, name)
	cmds := make([][]string, len(steps))
	for i, st := range steps {
		cmds[i] = st.args
	}
	replies, _, err := s.exchange(ctx, cmds)
	for i, v := range replies {
		if err := s.stepError(t, steps[i], v); err != nil {
			return err
		}
	}
	if err != nil && steps[len(replies)].optional && name != "" && errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", errNameRefused, err)
	}
	return err
}

// stepError is the error of the reply to one command of the handshake, if it matters.
func (s *Session) stepError(t target.Target, st step, v resp.Value) error {
	var reply *resp.ServerError
	if !errors.As(v.Err(), &reply) {
		return nil
	}
	reply = withoutSecret(reply, t.Password)
	command := st.args[0]
	var state *Error
	known := errors.As(explainReply(s.addr, reply), &state)
	switch {
	case known && (state.Kind == ErrLoading || state.Kind == ErrBusy || state.Kind == ErrMasterDown):
		return nil
	case known:
		return state
	case command == "AUTH" && noPasswordSet(reply):
		return nil // as redis-cli: the server lets in everybody
	case st.optional:
		return nil
	}
	return &Error{Addr: s.addr, Text: command + " refused: " + reply.Error() + fix(command, reply), Err: reply}
}

// noPasswordSet recognizes the error reply to a password if the server has none, of 5.0 and of 6.0.
func noPasswordSet(e *resp.ServerError) bool {
	return strings.Contains(e.Message, "no password is set") || strings.Contains(e.Message,
		"without any password configured")
}

func fix(command string, e *resp.ServerError) string {
	switch {
	case command == "AUTH" && strings.Contains(e.Message, "wrong number of arguments"):
		return "; servers before 6.0 have no users: leave out --user"
	case command == "HELLO":
		return "; the server may be older than 6.0: leave out -3"
	case command == "SELECT":
		return "; check -n"
	}
	return ""
}

// withoutSecret takes the password out of an error reply: servers quote the arguments of a command they do not know.
func withoutSecret(e *resp.ServerError, password string) *resp.ServerError {
	if password == "" || !strings.Contains(e.Message, password) {
		return e
	}
	return &resp.ServerError{Code: e.Code, Message: strings.ReplaceAll(e.Message, password, "***")}
}
