package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"slowpath/internal/house/needs"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output, Key, Value, ImportPath string
}

// testName is a test of a package; test is "" for the package itself.
type testName struct{ pkg, test string }

func (n testName) String() string {
	return strings.TrimSpace(strings.TrimPrefix(n.pkg, "slowpath/") + " " + n.test)
}

// top is the test function of a subtest.
func (n testName) top() testName {
	n.test, _, _ = strings.Cut(n.test, "/")
	return n
}

// result is what one test did.
type result struct {
	action string // pass, fail or skip; "" while it runs
	output strings.Builder
	attrs  map[string]string
}

// results are what all tests did.
type results struct {
	progress io.Writer // a line for each package that ends
	tests    map[testName]*result
	order    []testName
	builds   map[string]*strings.Builder // what the compiler said, by package
	broken   map[string]string           // packages that failed without a test that did, and what they said
	died     map[string]bool             // packages whose test binary ended by itself
	before   map[testName]string         // output of tests that failed and were run again
}

func newResults(progress io.Writer) *results {
	return &results{
		progress: progress, tests: map[testName]*result{}, builds: map[string]*strings.Builder{},
		broken: map[string]string{}, died: map[string]bool{}, before: map[testName]string{},
	}
}

// read takes events until they end. What is no event is passed on: go test writes some errors so.
func (r *results) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil {
			r.take(e)
		} else {
			fmt.Fprintf(r.progress, "%s", line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (r *results) take(e event) {
	if e.Action == "build-output" {
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
		return
	}
	name := testName{e.Package, e.Test}
	t := r.tests[name]
	if t == nil {
		t = &result{attrs: map[string]string{}}
		r.tests[name] = t
		r.order = append(r.order, name)
	}
	switch e.Action {
	case "attr":
		t.attrs[e.Key] = e.Value
	case "output":
		r.output(name, t, e.Output)
	case "pass", "fail", "skip":
		t.action = e.Action
		if e.Action == "pass" {
			t.output.Reset()
		}
		if e.Test == "" {
			r.packageEnded(e.Package, e.Action)
			t.output.Reset()
		}
	}
}

// packageEnded fails the tests that had not ended when their package did. A package that failed without a failed test
// is broken: it did not build, or its binary ended by itself.
func (r *results) packageEnded(pkg, action string) {
	failed := false
	for _, n := range r.order {
		t := r.tests[n]
		if n.pkg != pkg || n.test == "" {
			continue
		}
		if t.action == "" {
			t.action = "fail"
			r.died[pkg] = true
		}
		failed = failed || t.action == "fail"
	}
	if action == "fail" && !failed {
		r.broken[pkg] = r.tests[testName{pkg, ""}].output.String()
	}
}

func (r *results) output(name testName, t *result, text string) {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		r.died[name.pkg] = true
	}
	switch {
	case name.test != "" && (strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "PASS")):
	case name.test == "" && (strings.HasPrefix(text, "ok ") || strings.HasPrefix(text, "FAIL\t")):
		fmt.Fprint(r.progress, text)
	default:
		t.output.WriteString(text)
	}
}

// takeLeft gives the tests that were left to another run, and forgets them.
func (r *results) takeLeft(to string) (names []testName) {
	for name, t := range r.tests {
		if t.attrs[needs.LeftAttr] == to && t.action == "skip" {
			names = append(names, name)
		}
	}
	for _, n := range names {
		r.forget(n)
	}
	slices.SortFunc(names, byName)
	return names
}

func byName(a, b testName) int { return strings.Compare(a.String(), b.String()) }

// ran fails a test that was to run alone and did not.
func (r *results) ran(name testName) {
	if r.tests[name] == nil {
		r.take(event{Action: "fail", Package: name.pkg, Test: name.test, Output: ""})
	}
}

// forget removes a test function with its subtests.
func (r *results) forget(name testName) {
	for n := range r.tests {
		if n.top() == name {
			delete(r.tests, n)
		}
	}
	r.order = slices.DeleteFunc(r.order, func(n testName) bool { return n.top() == name })
}

// failedOutside are the test functions of the real and long layers that failed, where no test binary died.
func (r *results) failedOutside() (names []testName) {
	for name, t := range r.tests {
		if t.action == "fail" && name.test != "" && name == name.top() && t.attrs[needs.LayerAttr] != "" &&
			!r.died[name.pkg] {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, byName)
	return names
}

// again prepares a failed test for another run; its package is judged by its tests from now on.
func (r *results) again(name testName) {
	r.before[name] = r.outputOf(name)
	r.forget(name)
}

// outputOf is what a test function and its subtests printed.
func (r *results) outputOf(name testName) string {
	var b strings.Builder
	for _, n := range r.order {
		if n.top() == name && r.tests[n].action == "fail" {
			b.WriteString(r.tests[n].output.String())
		}
	}
	return b.String()
}

// failed are the tests that failed, those that were run again and did not pass, and packages that are broken.
func (r *results) failed() (names []testName) {
	for _, n := range r.order {
		if n.test != "" && r.tests[n].action == "fail" {
			names = append(names, n)
		}
	}
	for n := range r.before {
		if t := r.tests[n]; t == nil || t.action == "skip" {
			names = append(names, n)
		}
	}
	for pkg := range r.broken {
		names = append(names, testName{pkg, ""})
	}
	slices.SortFunc(names, byName)
	return names
}

// said is what a test or package that failed printed, in all its runs.
func (r *results) said(name testName) string {
	if name.test == "" {
		return r.broken[name.pkg]
	}
	out := r.before[name]
	if t := r.tests[name]; t != nil {
		out += t.output.String()
	}
	return out
}

// flaky are the tests that failed beside others, and passed alone.
func (r *results) flaky() (names []testName) {
	for name := range r.before {
		if t := r.tests[name]; t != nil && t.action == "pass" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, byName)
	return names
}
