package tracing

import (
	"errors"
	"fmt"
	"os"

	"slowpath/internal/cli"
	"slowpath/internal/outfile"
	"slowpath/internal/trace"
)

// makeExport opens the file of an export: a place that cannot be written is known before the watch.
func (t *tracing) makeExport() error {
	if t.flags.Perfetto == "" {
		return nil
	}
	out, err := outfile.Create(t.flags.Perfetto)
	switch {
	case errors.Is(err, os.ErrExist):
		return cli.Usagef("%s exists already; name another file for --perfetto or remove it", t.flags.Perfetto)
	case err != nil:
		return cli.Usage(fmt.Errorf("making the file for --perfetto: %w", err))
	}
	t.out, t.export = out, &trace.Perfetto{}
	t.app.Scratch.Begun(t.flags.Perfetto)
	return nil
}

// leaveExport removes the file of an export that was not written.
func (t *tracing) leaveExport() {
	if t.out != nil {
		t.out.Close()
		outfile.Remove(t.flags.Perfetto)
		t.app.Scratch.Whole(t.flags.Perfetto)
	}
}

func (t *tracing) writeExport() error {
	if t.out == nil {
		return nil
	}
	done := t.app.Working("writing %s", t.flags.Perfetto)
	err := errors.Join(t.export.Write(t.out), t.out.Close())
	done()
	t.app.Scratch.Whole(t.flags.Perfetto)
	t.out = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.flags.Perfetto, err)
	}
	if t.export.Omitted > 0 {
		t.note("%d calls and waits had no room in %s; narrow it with filters, or watch for less time", t.export.Omitted,
			t.flags.Perfetto)
	}
	t.note("%s: open it in https://ui.perfetto.dev", t.flags.Perfetto)
	return nil
}
