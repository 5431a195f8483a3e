// Package session is one logged-in connection to a watched server. It sends only commands of the allow-list
// ([Allowed]), so that nothing that uses it can change data or settings of the server.
package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// DefaultTimeout bounds a call whose context has no deadline, and every handshake.
const DefaultTimeout = 5 * time.Second

// Session is a connection with its login done. It is for one goroutine; only Close may be called from another.
type Session struct {
	conn   *target.Conn
	addr   string // of the target, for messages
	in     counter
	reader *resp.Reader
	out    []byte
	broken error // why nothing more can be sent
	// NameRefused says that the peer closed the connection at CLIENT SETNAME, so that this one has no name.
	NameRefused bool
	writes      bool // see PermitWrites
}

// Timing is when a call was sent and answered, with the clock's monotonic reading.
type Timing struct {
	Sent time.Time // just before the write
	End  time.Time // the whole reply was parsed
	// how long the last bytes were in the socket before this process read them; 0 if not known
	ReadDelay    time.Duration
	RequestBytes int
	ReplyBytes   int
}

// counter counts what has been read off the connection, before the reader's buffer.
type counter struct {
	from  io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.bytes += int64(n)
	return n, err
}

func newSession(conn *target.Conn) *Session {
	s := &Session{conn: conn, addr: conn.Target().Addr()}
	s.in.from = conn
	s.reader = resp.NewReader(&s.in, resp.Limits{})
	return s
}

// Do sends a command and returns its reply. A command that is not allowed is ErrForbidden and is not sent. An error
// reply is returned as an error with a *resp.ServerError in its chain; where it is a known state of the server it
// matches ErrLoading, ErrBusy and so on too.
func (s *Session) Do(ctx context.Context, args ...string) (resp.Value, error) {
	v, _, err := s.DoTimed(ctx, args...)
	return v, err
}

// DoTimed is Do with the times of the call; after an error the times up to it.
func (s *Session) DoTimed(ctx context.Context, args ...string) (resp.Value, Timing, error) {
	if !Allowed(args...) && !(s.writes && writesOwnKey(args)) {
		return resp.Value{}, Timing{}, forbidden(args)
	}
	replies, timing, err := s.exchange(ctx, [][]string{args})
	if err != nil {
		return resp.Value{}, timing, err
	}
	return replies[0], timing, s.replyError(replies[0])
}

// PermitWrites lets a session SET keys of slowpath's own that expire, and DEL them: `probe --write` only.
func (s *Session) PermitWrites() { s.writes = true }

// Pipeline sends commands in one write and returns their replies, error replies as values. If one of the commands is
// not allowed, none is sent. With an error the replies before it are returned.
func (s *Session) Pipeline(ctx context.Context, cmds [][]string) ([]resp.Value, error) {
	for _, args := range cmds {
		if !Allowed(args...) {
			return nil, forbidden(args)
		}
	}
	if len(cmds) == 0 {
		return nil, nil
	}
	replies, _, err := s.exchange(ctx, cmds)
	return replies, err
}

// exchange writes the commands and reads as many replies. The handshake uses it directly.
func (s *Session) exchange(ctx context.Context, cmds [][]string) ([]resp.Value, Timing, error) {
	if s.broken != nil {
		return nil, Timing{}, fmt.Errorf("%w: %w", ErrBroken, s.broken)
	}
	if err := ctx.Err(); err != nil {
		return nil, Timing{}, err // nothing sent: the session stays usable
	}
	limit, release := s.bound(ctx)
	defer release()

	s.out = s.out[:0]
	for _, args := range cmds {
		s.out = resp.AppendCommand(s.out, args...)
	}
	before := s.consumed()
	timing := Timing{RequestBytes: len(s.out), Sent: time.Now()}
	_, writeErr := s.conn.Write(s.out)
	// It is read after a failed write, too: a server that refuses a connection (maxclients, protected mode) sends an
	// error and closes, and the error can still be read.
	replies, err := s.reader.Replies(len(cmds), repliesBytes(cmds))
	timing.End = time.Now()
	timing.ReplyBytes = int(s.consumed() - before)
	if delay, ok := s.conn.ReadDelay(); ok && err == nil {
		timing.ReadDelay = delay
	}
	if writeErr != nil && len(replies) == 0 {
		err = writeErr
	}
	if err != nil {
		s.broken = s.explainIO(ctx, err, cmds[len(replies)][0], limit)
		return replies, timing, s.broken
	}
	return replies, timing, nil
}

// repliesBytes bounds the replies to commands that are sent in one write: what they take in memory, about.
func repliesBytes(cmds [][]string) (most int64) {
	const (
		usual   = 4 << 20  // INFO of the largest servers has less than 1 MB, 128 entries of SLOWLOG too
		clients = 16 << 20 // 40 000 of them
		cluster = 32 << 20 // SLOTS of a map in which each slot is a range of its own
	)
	most = usual
	for _, args := range cmds {
		switch name := strings.ToUpper(args[0]); {
		case name == "CLUSTER":
			most = cluster
		case name == "CLIENT" && len(args) > 1 && strings.EqualFold(args[1], "LIST"):
			most = max(most, clients)
		}
	}
	return most
}

// consumed is the bytes of the replies read so far.
func (s *Session) consumed() int64 { return s.in.bytes - int64(s.reader.Buffered()) }

// bound puts the context's deadline on the connection and lets its end interrupt a blocked read or write. It returns
// the time allowed; release must be called when the call is over.
func (s *Session) bound(ctx context.Context) (limit time.Duration, release func()) {
	now := time.Now()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = now.Add(DefaultTimeout)
	}
	_ = s.conn.SetDeadline(deadline) // fails on a closed connection only, and then the write says so
	if ctx.Done() == nil {
		return deadline.Sub(now), func() {}
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = s.conn.SetDeadline(time.Unix(1, 0))
	})
	return deadline.Sub(now), func() {
		if !stop() {
			<-interrupted // or it could cut the deadline of the next call
		}
	}
}

// Close closes the connection; a call in progress ends with an error.
func (s *Session) Close() error { return s.conn.Close() }

// LocalAddr is this end, as the server names it in CLIENT LIST and SLOWLOG (unless the address is translated in
// between).
func (s *Session) LocalAddr() string { return s.conn.LocalAddr().String() }

// RemoteAddr is the server's end: the address that the name of the target resolved to.
func (s *Session) RemoteAddr() string { return s.conn.RemoteAddr().String() }

// Conn is the connection, for its TCP_INFO and its peer. Reading or writing it would break the session.
func (s *Session) Conn() *target.Conn { return s.conn }

// Detach gives the connection to a caller with its own protocol loop, such as the load generator; s cannot be used any
// more.
func (s *Session) Detach() *target.Conn {
	s.broken = ErrClosed
	return s.conn
}
