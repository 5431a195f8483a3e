package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const readyPoll = 10 * time.Millisecond

// errPortTaken says that another process listens on the port.
var errPortTaken = fmt.Errorf("%w: another process has it", ErrPort)

// awaitReady waits until the server answers PING, with PONG or with an error that only a server that serves gives.
func (i *Instance) awaitReady(ctx context.Context) error {
	last := errors.New("not asked yet")
	err := poll(ctx, readyPoll, func() (bool, error) {
		select {
		case <-i.exited:
			return false, i.exitError()
		default:
		}
		if last = i.ping(ctx); errors.Is(last, errPortTaken) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer to PING before the deadline (%w; %w); %s", err, last, i.logTail())
	}
	return err
}

func (i *Instance) exitError() error {
	tail := i.logTail()
	if body, _ := os.ReadFile(i.LogPath); strings.Contains(string(body), "Address already in use") {
		return fmt.Errorf("%w; %s", errPortTaken, tail)
	}
	return fmt.Errorf("the server ended (%v); %s", i.exitErr, tail)
}

// ping sends PING once. Our process must answer: another server may have taken the port.
func (i *Instance) ping(ctx context.Context) error {
	c, err := i.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ask(ctx, "PING"); err != nil && !serving(err) {
		return err
	}
	if i.spec.Password != "" {
		if _, err := c.ask(ctx, "AUTH", i.spec.Password); err != nil && !serving(err) {
			return err
		}
	}
	info, err := c.ask(ctx, "INFO", "server")
	text, ok := info.(string)
	if err != nil || !ok { // an ACL may forbid INFO
		if serving(err) {
			return nil
		}
		return err
	}
	return i.identify(text)
}

// serving recognises the error replies of a server that is up: it requires a password, loads its data, or the user may
// not do that.
func serving(err error) bool {
	var r refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, code := range []string{"NOAUTH", "LOADING", "NOPERM", "WRONGPASS", "MASTERDOWN"} {
		if strings.HasPrefix(string(r), code) {
			return true
		}
	}
	return false
}

// identify compares the pid and takes the version from INFO server.
func (i *Instance) identify(info string) error {
	if pid, err := strconv.Atoi(infoField(info, "process_id")); err == nil && pid != i.PID {
		return fmt.Errorf("%w: process %d", errPortTaken, pid)
	}
	for _, name := range []string{"valkey_version", "redis_version"} { // valkey says 7.2.4 in redis_version
		if v := infoField(info, name); v != "" {
			i.Version = v
			break
		}
	}
	return nil
}

// infoField returns a field of a reply to INFO or CLUSTER INFO, or "" if there is none.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// AwaitLoaded waits until the server has loaded its data. Start does not, since a scenario may need LOADING.
func (i *Instance) AwaitLoaded(ctx context.Context) error {
	ctx, cancel := withDefaultTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, readyPoll, func() (bool, error) {
		_, err := i.Do(ctx, "PING")
		var r refusal
		if errors.As(err, &r) && strings.HasPrefix(string(r), "LOADING") {
			return false, nil
		}
		return err == nil, err
	})
}
