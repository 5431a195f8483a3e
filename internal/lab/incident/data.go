package incident

import (
	"context"
	"fmt"
	"io"
	"net"

	"slowpath/internal/lab/fleet"
)

// steps runs a script over [0, n) in steps short enough not to trip the server's script limit. ARGV[1] is the first,
// ARGV[2] the last index of a step, KEYS and further arguments follow.
func steps(ctx context.Context, s *fleet.Instance, script string, n int, args ...string) error {
	const step = 50_000
	for from := 0; from < n; from += step {
		cmd := append([]string{"EVAL", script, "0", itoa(from), itoa(min(from+step, n) - 1)}, args...)
		if _, err := s.Do(ctx, cmd...); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// fillHash makes a hash of n small fields.
func fillHash(ctx context.Context, s *fleet.Instance, key string, n int) error {
	return steps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('HSET',ARGV[3],'field:'..i,'some value '..i) end", n, key)
}

// fillSet makes a set of n small members.
func fillSet(ctx context.Context, s *fleet.Instance, key string, n int) error {
	return steps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SADD',ARGV[3],'member:'..i) end", n, key)
}

// fillBig makes n strings of a size in bytes.
func fillBig(ctx context.Context, s *fleet.Instance, prefix string, n, bytes int) error {
	for i := range n {
		if _, err := s.Do(ctx, "EVAL", "redis.call('SET',ARGV[1],string.rep('0123456789abcdef',ARGV[2]))", "0",
			prefix+itoa(i), itoa(bytes/16)); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// monitor opens a client that runs MONITOR and reads what comes, until the lab ends.
func (l *Lab) monitor(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "MONITOR\r\n"); err != nil {
		c.Close()
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c) // ends when it is closed
	}()
	l.Defer(func(context.Context) error { c.Close(); <-done; return nil })
	return nil
}

// before reports whether the lab's server is older than a version of Redis; every Valkey is newer than Redis 7.2.
func (l *Lab) before(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(string(l.Server), "redis-%d.%d", &a, &b); err != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// since keeps lines of redis.conf that came with a version, if the lab's server has it.
func (l *Lab) since(major, minor int, lines ...string) []string {
	if l.before(major, minor) {
		return nil
	}
	return lines
}
