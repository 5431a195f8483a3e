// Suite runs the tests and sums up: what failed, what was skipped and why, and one line of totals.
//
//	go run ./internal/house/suite [arguments of go test]
//
// It runs them in up to three parts:
//
//  1. all tests, packages side by side;
//  2. those that need a quiet CPU (needs.QuietCPU), one at a time;
//  3. those of the real and long layers that failed, once more, one at a time. A test that passes then is named as
//     flaky, and the run passes. A hermetic test is never run again, and nothing is where a test binary died.
//
// The exit code is 1 when a test fails, a package does not build, or a test binary dies. All events of go test are left
// in bin/test.json.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"slowpath/internal/house/needs"
)

func main() {
	if err := os.MkdirAll("bin", 0o755); err != nil {
		fail(err)
	}
	log, err := os.Create("bin/test.json")
	if err != nil {
		fail(err)
	}
	s := suite{log: log, run: goTest, out: os.Stdout, args: os.Args[1:]}
	code := s.all()
	if err := log.Close(); err != nil {
		fail(err)
	}
	os.Exit(code)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// suite is one run of the tests.
type suite struct {
	args []string // of go test: flags and packages
	run  func(events io.Writer, env string, args ...string) error
	log  io.Writer // all events
	out  io.Writer // the summary
}

// all runs the three parts, and gives the exit code.
func (s suite) all() int {
	r := newResults(s.out)
	err := s.part(r, needs.TogetherVar+"=1", s.args...)
	for _, name := range r.takeLeft(needs.LeftToAlone) {
		fmt.Fprintln(s.out, "alone:", name)
		_ = s.part(r, "", s.only(name)...) // what failed is in the results
		r.ran(name)
	}
	again := r.failedOutside()
	for _, name := range again {
		fmt.Fprintln(s.out, "failed, once more alone:", name)
		r.again(name)
		_ = s.part(r, "", s.only(name)...)
	}
	r.summary(s.out)
	if len(r.failed()) > 0 {
		return 1
	}
	if err != nil && len(again) == 0 {
		fmt.Fprintf(s.out, "go test: %v, and no test failed: what it said is above\n", err)
		return 1
	}
	return 0
}

// part runs go test, whose events become results.
func (s suite) part(r *results, env string, args ...string) error {
	events, done := io.Pipe()
	read := make(chan error)
	go func() { read <- r.read(io.TeeReader(events, s.log)) }()
	err := s.run(done, env, args...)
	done.Close()
	if readErr := <-read; readErr != nil {
		return readErr
	}
	return err
}

// only are the arguments that run one test of one package, with the flags of this run (-NAME or -NAME=VALUE) that do
// not choose tests.
func (s suite) only(name testName) []string {
	var flags []string
	for _, a := range s.args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "-run") {
			flags = append(flags, a)
		}
	}
	return append(slices.Clone(flags), "-p=1", "-parallel=1", "-run=^"+name.test+"$", name.pkg)
}

// goTest runs go test with its events on a writer; vet is for make lint.
func goTest(events io.Writer, env string, args ...string) error {
	cmd := exec.Command("go", append([]string{"test", "-json", "-vet=off", "-count=1", "-timeout=20m"}, args...)...)
	cmd.Env = os.Environ()
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	cmd.Stdout, cmd.Stderr = events, os.Stderr
	return cmd.Run()
}
