//go:build linux

package benching

import (
	"errors"
	"path/filepath"

	"slowpath/internal/cli"
	"slowpath/internal/load/experiment"
	"slowpath/internal/load/results"
)

// failIf reads --fail-if.
func (f *Options) failIf() ([]experiment.FailIf, error) {
	if !f.Experiment.Given.Changed("fail-if") {
		return nil, nil
	}
	bounds, err := experiment.ParseFailIf(f.FailIf)
	if err != nil {
		return nil, cli.Usagef("--fail-if %w", err)
	}
	return bounds, nil
}

// exitAs sets the exit code by the outcome of checks.
func (b *benching) exitAs(outcome string) {
	switch {
	case outcome == experiment.Fails:
		b.app.Code = cli.ExitFindings
	case outcome == experiment.Untested && b.app.Code == cli.ExitClean:
		b.app.Code = cli.ExitUntold
	}
}

// openSummaries makes the files of --summary before the load, so that a name that cannot be written ends the command
// and not the load.
func (b *benching) openSummaries() error {
	for _, name := range b.flags.Summary {
		if _, ok := results.SummaryFormats[filepath.Ext(name)]; !ok {
			return cli.Usagef("--summary %s: give a name that ends in .md (Markdown) or .xml (JUnit)", name)
		}
		file, err := cli.NewFile("summary", name)
		if err != nil {
			return err
		}
		b.summaries = append(b.summaries, file)
	}
	return nil
}

// summarise writes the files of --summary.
func (b *benching) summarise(s results.Summary) (err error) {
	for _, file := range b.summaries {
		err = errors.Join(err, results.SummaryFormats[filepath.Ext(file.Name())](file, s), file.Close())
	}
	b.summaries = nil
	return err
}

// discardSummaries removes the files of a load that never was.
func (b *benching) discardSummaries() {
	for _, file := range b.summaries {
		file.Close()
		cli.RemoveFile(file.Name())
	}
}
