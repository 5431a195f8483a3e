package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"slowpath/internal/report/layout"
)

// usualWidth is that of a terminal whose width is not known, and of what is no terminal.
const usualWidth = 80

// style is how text goes to stdout.
func (a *app) style() layout.Style {
	if f, ok := a.stdout.(*os.File); ok {
		return layout.StyleOf(f, a.env)
	}
	return layout.Style{Width: usualWidth}
}

// onTerminal reports whether stderr is a terminal, so that live lines make sense.
func (a *app) onTerminal() bool {
	f, ok := a.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress shows what a long command is doing: a live line on a terminal, nothing elsewhere. It never takes a second
// line, which could not be taken back.
func (a *app) progress(format string, args ...any) {
	if a.onTerminal() {
		line := layout.OneLine(fmt.Sprintf(format, args...))
		fmt.Fprint(a.stderr, "\r\x1b[K"+layout.Shorten(line, a.liveWidth(), "..."))
	}
}

// working shows what takes long, and for how many seconds; the function that it returns ends it.
func (a *app) working(what string) (done func()) {
	if !a.onTerminal() {
		return func() {}
	}
	a.progress("%s", what)
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-ended:
				return
			case <-tick.C:
				a.progress("%d s, %s", seconds, what)
			}
		}
	})
	return func() {
		close(ended)
		wg.Wait()
		a.progressDone()
	}
}

func (a *app) progressDone() {
	if a.onTerminal() {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
}

// liveWidth is one less than the terminal has: some wrap after the last column.
func (a *app) liveWidth() int {
	if f, ok := a.stderr.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return w - 1
		}
	}
	return usualWidth - 1
}
