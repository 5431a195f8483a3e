package cli

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// AwaitReaderGone calls end when nobody reads stdout any more, a pipe or a terminal, though nothing may be written to
// it for hours. It returns then, or when ctx ends.
func (p *Program) AwaitReaderGone(ctx context.Context, end context.CancelFunc) {
	out, ok := p.Stdout.(*os.File)
	if !ok {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fds := []unix.PollFd{{Fd: int32(out.Fd())}}
			n, err := unix.Poll(fds, 0)
			if err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				end()
				return
			}
		}
	}
}
