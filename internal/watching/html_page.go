package watching

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/report"
)

// Page is the file of --html: it is made before a watch, so that a wrong name is an error at once, and while there
// is still the right to.
type Page struct {
	Path string
	file *os.File
	made *cli.Scratch
}

// Open makes the file, where one is asked for.
func (p *Page) Open(made *cli.Scratch) (err error) {
	if p.Path == "" {
		return nil
	}
	p.file, err = outfile.Create(p.Path)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("--html %s exists already; name another file or remove it", p.Path)
	}
	if err != nil {
		return cli.Usagef("--html: %w", err)
	}
	p.made = made
	made.Begun(p.Path)
	return nil
}

// Discard removes a file into which nothing was written.
func (p *Page) Discard() {
	if p.file != nil {
		p.file.Close()
		outfile.Remove(p.Path)
		p.made.Whole(p.Path)
		p.file = nil
	}
}

// write writes the page of a diagnosis, once.
func (p *Page) write(rec *recording.Recording, d verdict.Diagnosis) error {
	if p.file == nil {
		return nil
	}
	over, ok := compare.CallsOverTime(rec, d)
	err := errors.Join(report.HTML(p.file, d, over, ok), p.file.Close())
	p.made.Whole(p.Path)
	p.file = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.Path, err)
	}
	return nil
}
