package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{Usagef("--for x"), ExitUsage},
		{fmt.Errorf("reading: %w", recording.ErrNotRecording), ExitUsage},
		{target.ErrBadTarget, ExitUsage},
		{fmt.Errorf("reading: %w", resp.ErrNotRedis), ExitConnect},
		{context.Canceled, ExitConnect},
		{fmt.Errorf("the tap is %w", ErrMissing), ExitMissing},
		{errors.New("something nobody thought of"), ExitInternal},
		{fmt.Errorf("writing the report: %w", fs.ErrPermission), ExitInternal},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestReaderGone: that nobody reads stdout any more is no error, but hides no other one.
func TestReaderGone(t *testing.T) {
	pipe := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	terminal := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EIO}
	disk := &fs.PathError{Op: "write", Path: "x.slowpath", Err: syscall.EIO}
	remain := errors.New("keys of the load remain")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{pipe, true},
		{fmt.Errorf("writing: %w", terminal), true},
		{errors.Join(pipe, terminal), true},
		{disk, false},
		{errors.Join(pipe, remain), false},
		{remain, false},
	} {
		if got := ReaderGone(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestFolded: on a terminal an error breaks at words, and the command that it ends in stays whole.
func TestFolded(t *testing.T) {
	const text = "slowpath: no such recording: night.slowpath; check the name, or make it: slowpath record HOST:PORT " +
		"-o night.slowpath"
	got := folded(text, 40)
	want := "slowpath: no such recording:\nnight.slowpath; check the name, or make\nit:\n" +
		"  slowpath record HOST:PORT -o night.slowpath"
	if got != want {
		t.Errorf("got %q", got)
	}
	if got := folded(text, 200); got != text {
		t.Errorf("with room: %q", got)
	}
	for width := 40; width <= 120; width++ {
		if back := strings.Join(strings.Fields(folded(text, width)), " "); back != text {
			t.Errorf("at %d: %q", width, back)
		}
	}
}
