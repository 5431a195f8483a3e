// Changelog checks the entries of changelog/unreleased, and at a release moves them into CHANGELOG.md.
//
//	go run ./internal/house/changelog           checks them
//	go run ./internal/house/changelog 0.7.0     moves them: the version is of today (UTC)
//
// changelog/TEMPLATE.md says how an entry is written.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	changelogFile = "CHANGELOG.md"
	unreleased    = "changelog/unreleased"
)

var versionName = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func main() {
	if err := run(os.Args[1:], time.Now().UTC()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, now time.Time) error {
	entries, problems, err := readEntries(unreleased)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s\nchangelog/TEMPLATE.md says how an entry is written", strings.Join(problems, "\n"))
	}
	if len(args) == 0 {
		fmt.Printf("%d entries are not released\n", len(entries))
		return nil
	}
	if len(args) > 1 || !versionName.MatchString(args[0]) {
		return fmt.Errorf("give nothing, or a version such as 0.7.0, not %q", args)
	}
	return release(args[0], now.Format(time.DateOnly), entries)
}

// release moves the entries into CHANGELOG.md.
func release(name, date string, entries []entry) error {
	old, err := os.ReadFile(changelogFile)
	if err != nil {
		return err
	}
	switch {
	case len(entries) == 0:
		return fmt.Errorf("%s has no entries", unreleased)
	case strings.Contains(string(old), "\n## ["+name+"]"):
		return fmt.Errorf("%s has version %s already", changelogFile, name)
	}
	text, err := insert(string(old), version(name, date, entries))
	if err != nil {
		return err
	}
	if err := os.WriteFile(changelogFile, []byte(text), 0o644); err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(e.path); err != nil {
			return err
		}
	}
	return nil
}
