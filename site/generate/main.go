// Command generate writes the source of the documentation site (make site): the pages of site/docs, the documents of
// docs, one page per cause with a verdict that slowpath gives, now, of a recording of the lab, and the walk-through.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"slowpath/internal/report"
)

func main() {
	slowpath := flag.String("slowpath", "bin/slowpath", "`program` that judges the recordings")
	out := flag.String("out", "dist/site-source", "`directory` that is written anew")
	walkthrough := flag.String("walkthrough", "dist/walkthrough", "`directory` of what scripts/walkthrough made")
	flag.Parse()
	if err := generate(*slowpath, *walkthrough, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate writes the whole source of the site. It ends at the first error: a site lacks nothing.
func generate(slowpath, walkthrough, out string) error {
	slowpath, err := filepath.Abs(slowpath)
	if err != nil {
		return err
	}
	causes, err := causesOf(slowpath)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	verdicts, err := judge(slowpath, causes, filepath.Join(out, "reports"))
	if err != nil {
		return err
	}
	if err := writeCauses(filepath.Join(out, "causes"), causes, verdicts); err != nil {
		return err
	}
	if err := copyDocuments("docs", filepath.Join(out, "reference")); err != nil {
		return err
	}
	for _, pages := range []string{"site/docs", walkthrough} {
		if err := copyPages(pages, out, verdicts); err != nil {
			return err
		}
	}
	fmt.Printf("%d causes, %d with a verdict of a recording\n", len(causes), len(verdicts))
	return nil
}

// causesOf are those that the program knows.
func causesOf(slowpath string) ([]report.CauseText, error) {
	text, err := exec.Command(slowpath, "explain", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("%s explain: %w; make build makes it", slowpath, err)
	}
	var all report.Causes
	err = json.Unmarshal(text, &all)
	return all.Causes, err
}
