package main

import (
	"fmt"
	"os"

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

// line prints a line to stdout, which a terminal gets broken at words.
func (a *app) line(text string) error {
	if f, ok := a.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		text = layout.Fill(text, a.style().Width)
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}

// onTerminal reports whether stderr is a terminal, so that live lines make sense.
func (a *app) onTerminal() bool {
	f, ok := a.rawStderr().(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// liveWidth is one less than the terminal has: some wrap after the last column.
func (a *app) liveWidth() int {
	if f, ok := a.rawStderr().(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return w - 1
		}
	}
	return usualWidth - 1
}
