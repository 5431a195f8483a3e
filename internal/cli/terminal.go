package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"slowpath/internal/report/layout"
)

// usualWidth is that of a terminal whose width is not known, and of what is no terminal.
const usualWidth = 80

// Style is how text goes to stdout.
func (p *Program) Style() layout.Style {
	if f, ok := p.Stdout.(*os.File); ok {
		return layout.StyleOf(f, p.Env)
	}
	return layout.Style{Width: usualWidth}
}

// Line prints a line to stdout, which a terminal gets broken at words.
func (p *Program) Line(text string) error {
	if f, ok := p.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		text = layout.Fill(text, p.Style().Width)
	}
	_, err := fmt.Fprintln(p.Stdout, text)
	return err
}

// OnTerminal reports whether stderr is a terminal, so that live lines make sense.
func (p *Program) OnTerminal() bool {
	f, ok := p.rawStderr().(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// LiveWidth is one less than the terminal has: some wrap after the last column.
func (p *Program) LiveWidth() int {
	if f, ok := p.rawStderr().(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return w - 1
		}
	}
	return usualWidth - 1
}
