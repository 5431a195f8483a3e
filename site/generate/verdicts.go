package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/report"
)

// verdict is what doctor says of a recording.
type verdict struct {
	scenario string
	text     string // 80 columns wide
	first    bool   // the cause is the first finding
	causes   []string
}

// judge gives, by cause, the verdict of a recording of one of its scenarios: of the one that is named as the cause, or
// of the first in which it is the first finding, or in which it is found. The pages of doctor --html go into a
// directory, under the id of the cause.
func judge(slowpath string, causes []report.CauseText, pages string) (map[string]verdict, error) {
	scratch, err := os.MkdirTemp("", "slowpath-site")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return nil, err
	}
	recorded := corpus.Scenarios()
	out := map[string]verdict{}
	for _, c := range causes {
		for _, scenario := range ownFirst(c) {
			if !slices.Contains(recorded, scenario) {
				continue
			}
			v, err := doctor(slowpath, scenario, scratch)
			if err != nil {
				return nil, fmt.Errorf("the recording of %s: %w", scenario, err)
			}
			v.first = len(v.causes) > 0 && v.causes[0] == c.ID
			if old, known := out[c.ID]; slices.Contains(v.causes, c.ID) && (!known || v.first && !old.first) {
				out[c.ID] = v
				err := publish(filepath.Join(scratch, scenario+".html"), filepath.Join(pages, c.ID+".html"))
				if err != nil {
					return nil, err
				}
			}
			if v.first {
				break
			}
		}
	}
	return out, nil
}

// ownFirst are the scenarios of a cause, that of its name first.
func ownFirst(c report.CauseText) []string {
	list := slices.Clone(c.Scenarios)
	slices.SortStableFunc(list, func(a, b string) int {
		switch c.ID {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	return list
}

// doctor runs slowpath doctor on a recording of the corpus. It leaves the page of --html in the
// scratch directory, named after the scenario.
func doctor(slowpath, scenario, scratch string) (verdict, error) {
	file := filepath.Join(scratch, scenario+".slowpath")
	if err := corpus.Unpack(scenario, file); err != nil {
		return verdict{}, err
	}
	defer os.Remove(file)
	text, err := output(slowpath, scratch, "doctor", filepath.Base(file), "--html", scenario+".html")
	if err != nil {
		return verdict{}, err
	}
	document, err := output(slowpath, scratch, "doctor", filepath.Base(file), "--json")
	if err != nil {
		return verdict{}, err
	}
	var d struct {
		Findings []struct{ Cause string }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return verdict{}, err
	}
	v := verdict{scenario: scenario, text: string(text)}
	for _, f := range d.Findings {
		v.causes = append(v.causes, f.Cause)
	}
	return v, nil
}

// output is what a command prints. 1 is the exit code of a verdict with findings.
func output(program, dir string, args ...string) ([]byte, error) {
	c := exec.Command(program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "NO_COLOR=1", "TZ=UTC")
	text, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 1 {
			return text, nil
		}
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return text, err
}

// publish copies a page for everybody to read: doctor makes it for its user alone.
func publish(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
