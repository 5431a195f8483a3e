package profile

import (
	"errors"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

func TestProcessThatIsNotThere(t *testing.T) {
	c := LoadCPU(Options{Clock: clock.New(), Sink: recording.New()})
	if err := c.Start([]Process{{PID: 1 << 30}}); !errors.Is(err, ErrTarget) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
