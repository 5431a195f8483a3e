package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/report"
)

const htmlFlag = "html"

// htmlPage is the file of --html: it is made before a watch, so that a wrong name is an error at once, and while there
// is still the right to.
type htmlPage struct {
	path string
	file *os.File
	made *cli.Scratch
}

func (p *htmlPage) addFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.path, htmlFlag, "", "also write the report into this `file`, as one HTML page that needs "+
		"nothing from elsewhere")
}

// open makes the file, where one is asked for.
func (p *htmlPage) open(made *cli.Scratch) (err error) {
	if p.path == "" {
		return nil
	}
	p.file, err = outfile.Create(p.path)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("--html %s exists already; name another file or remove it", p.path)
	}
	if err != nil {
		return cli.Usagef("--html: %w", err)
	}
	p.made = made
	made.Begun(p.path)
	return nil
}

// discard removes a file into which nothing was written.
func (p *htmlPage) discard() {
	if p.file != nil {
		p.file.Close()
		os.Remove(p.path)
		p.made.Whole(p.path)
		p.file = nil
	}
}

// write writes the page of a diagnosis, once.
func (p *htmlPage) write(rec *recording.Recording, d verdict.Diagnosis) error {
	if p.file == nil {
		return nil
	}
	over, ok := compare.CallsOverTime(rec, d)
	err := errors.Join(report.HTML(p.file, d, over, ok), p.file.Close())
	p.made.Whole(p.path)
	p.file = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.path, err)
	}
	return nil
}
