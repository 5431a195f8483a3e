package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fleet"
)

// logPipe is a pipe of one page that a server logs to, and whose reader can pause.
type logPipe struct {
	paused atomic.Int64 // until this time, in nanoseconds since 1970
}

// newLogPipe returns also the end that the server writes to, which is to be closed when it has it.
func newLogPipe(ctx context.Context, l *Lab) (*logPipe, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a pipe small: %w", err), r.Close(), w.Close())
	}
	p := &logPipe{}
	l.run(ctx, func(ctx context.Context) {
		buf := make([]byte, 1<<12)
		for {
			if _, err := r.Read(buf); err != nil {
				return // it is closed
			}
			pause(ctx, time.Until(time.Unix(0, p.paused.Load())))
		}
	})
	l.Defer(func(context.Context) error { return r.Close() })
	return p, w, nil
}

// pauseFor has nobody read for a while; 0: somebody reads.
func (p *logPipe) pauseFor(d time.Duration) { p.paused.Store(time.Now().Add(d).UnixNano()) }

// unreadLog has a server log each connection to a pipe that nobody reads for a while, and opens connections then.
var unreadLog = Fault{
	Name:  "event-loop-blocked",
	Cause: "event-loop-blocked",
	Needs: Needs{Topologies: []Topology{Standalone, Encrypted, Proxied, Namespaced}},
	Lasts: 200 * time.Millisecond,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 300, 600), "unread_ms": between(r, 2, 250)}
	},
	Config: func(*Lab, Strength) []string { return []string{"loglevel verbose"} },
	Server: func(ctx context.Context, l *Lab, st *Stage, spec *fleet.Spec) (err error) {
		st.log, spec.Log, err = newLogPipe(ctx, l)
		return err
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		const fills = 40 // connections whose lines fill a page
		l.Defer(func(context.Context) error { st.log.pauseFor(0); return nil })
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			st.log.pauseFor(s.millis("unread_ms"))
			for range fills {
				c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", st.Server.Addr)
				if err != nil {
					return err
				}
				c.Close()
			}
			return nil
		})
		return nil
	},
}
