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

// Opening is where the time of an Open went. A phase that did not take place is 0.
type Opening struct {
	Start     time.Time
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	Handshake time.Duration // from the first command (AUTH, HELLO, SELECT, CLIENT SETNAME, or PING) to the last reply
	// segments sent again until the connection stood: SYNs; with TLS, its handshake's too. 0 if not known
	SynRetrans int64
}

// step is one command of the handshake.
type step struct {
	args     []string
	optional bool // a refusal is no error
}

// Open connects to t and logs in. The context bounds the whole; the handshake has DefaultTimeout at most. All commands
// of the handshake go out in one write, AUTH first; a PING is sent where there is nothing else to say, since only a
// reply tells that the peer is a Redis that serves. A server that is loading, busy or without its master still gives a
// session: INFO works there.
//
// The Opening is valid as far as it got with an error too. Errors are those of target.Dial, *Error, or resp's.
func Open(ctx context.Context, t target.Target, name string) (*Session, Opening, error) {
	s, opening, err := open(ctx, t, name)
	if errors.Is(err, errNameRefused) {
		// Proxies such as twemproxy close the connection on a command that they do not know.
		s, opening, err = open(ctx, t, "")
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

// Login is the handshake of Open as it goes over the wire, for a caller that connects by himself, and how many replies
// it has. An error among them is for Open to judge.
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

// stepError judges the reply to one command of the handshake.
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

// noPasswordSet recognises the refusal of a password by a server that has none, 5.0's and 6.0's.
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
