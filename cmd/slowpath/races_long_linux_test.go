package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/needs"
)

// TestRaces runs testdata/races/*.txtar with a slowpath that is built with the race detector, which must report
// nothing.
func TestRaces(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer, needs.RedisCLI, needs.GCC)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-race", "-o", filepath.Join(dir, "slowpath"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	reports := filepath.Join(dir, "race")
	// Only the scripts say what exit codes are wrong.
	runScripts(t, "testdata/races", "GORACE=exitcode=0 log_path="+reports)
	t.Cleanup(func() { // the scripts are subtests that run in parallel
		files, err := filepath.Glob(reports + ".*")
		if err != nil {
			t.Error(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			t.Errorf("%s, %v", text[:min(len(text), 64<<10)], err)
		}
	})
}

// Browsers of visit, and how often each asks for each page.
const browsers, visits = 4, 10

func visit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: visit NAME PATH...")
	}
	base := pageOf.FindStringSubmatch(clitest.Named(ts, args).ErrOut.String())
	if base == nil {
		ts.Fatalf("%s does not say where its page is", args[0])
	}
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	errs := make([]error, browsers)
	var all sync.WaitGroup
	for b := range browsers {
		all.Go(func() {
			for range visits {
				for _, path := range args[1:] {
					if err := ask(client, base[1]+strings.TrimPrefix(path, "/")); err != nil {
						errs[b] = err
					}
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		ts.Check(err)
	}
}

// ask reads an answer, of one without end the beginning.
func ask(client *http.Client, url string) error {
	const beginning = 4 << 10
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	part := io.Reader(resp.Body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		part = io.LimitReader(resp.Body, beginning)
	}
	_, err = io.Copy(io.Discard, part)
	return err
}
