package capture

import (
	"context"
	"io"
)

// ReadBare reads a file and gives how much is still kept when all of its connections have ended: bytes of segments, and
// requests.
func ReadBare(file io.ReadSeeker, sink Sink) (heldBytes, waiting int) {
	a := newAnalysis(Options{Slow: DefaultSlow}, sink)
	truncated, err := a.packets(context.Background(), []File{{ReadSeeker: file}}, 0)
	if err != nil {
		return 0, 0
	}
	a.finish(truncated)
	for _, c := range a.conns {
		c.end()
	}
	return a.heldBytes, a.waiting
}
