package watching

import (
	"context"
	"io"
	"strings"
	"testing"

	"slowpath/internal/cli"
)

// TestEnter: Enter counts from when somebody is asked for it, and not before.
func TestEnter(t *testing.T) {
	keys, typing := io.Pipe()
	e := listen(keys)
	for _, text := range []string{"x\n", "half a li"} { // the second is read once the first was dealt with
		if _, err := typing.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.pressed) > 0 {
		t.Fatal("what was typed before counts")
	}
	e.asked.Store(true)
	go func() { _, _ = typing.Write([]byte("ne\n")) }() // nobody reads after the line
	if err := <-e.pressed; err != nil {
		t.Error(err)
	}
	if e = listen(strings.NewReader("")); e.await(t.Context(), &cli.Program{Stderr: io.Discard}) == nil {
		t.Error("a terminal that is gone is as good as Enter")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := listen(keys).await(ended, &cli.Program{Stderr: io.Discard}); err != nil {
		t.Error(err)
	}
}
