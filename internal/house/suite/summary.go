package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"slowpath/internal/house/needs"
)

// summary prints what failed, what is flaky, what was left out and why, and the totals as the last line.
func (r *results) summary(out io.Writer) {
	if failed := r.failed(); len(failed) > 0 {
		fmt.Fprintln(out, "\n=== failures ===")
		for _, build := range slices.Sorted(maps.Keys(r.builds)) {
			fmt.Fprint(out, r.builds[build].String())
		}
		for _, n := range failed {
			fmt.Fprintf(out, "%s\n%s\n", n, r.said(n))
		}
	}
	flaky := r.flaky()
	for _, n := range flaky {
		fmt.Fprintf(out, "\n=== %s: failed beside others, passed alone ===\n%s", n, r.before[n])
	}
	passed, skips, left := 0, map[string][]string{}, map[string]int{}
	for _, n := range r.order {
		t := r.tests[n]
		switch {
		case n.test == "":
		case t.action == "pass":
			passed++
		case t.action == "skip" && t.attrs[needs.LeftAttr] != "":
			left[t.attrs[needs.LeftAttr]]++
		case t.action == "skip":
			why := reason(t.output.String())
			skips[why] = append(skips[why], n.String())
		}
	}
	skipped := 0
	if len(skips) > 0 {
		fmt.Fprintln(out, "\n=== skipped, and why ===")
	}
	for _, why := range slices.Sorted(maps.Keys(skips)) {
		fmt.Fprintf(out, "%s\n    %s\n", why, strings.Join(skips[why], "\n    "))
		skipped += len(skips[why])
	}
	fmt.Fprintln(out)
	for _, to := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(out, "left to %s: %d tests\n", to, left[to])
	}
	for _, n := range flaky {
		fmt.Fprintln(out, "flaky:", n)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, len(r.failed()), skipped)
}

var place = regexp.MustCompile(`^\w+\.go:\d+:\s*`)

// reason is why a test was skipped, which is the last thing that it said.
func reason(output string) string {
	last := "no reason given"
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- ") {
			last = place.ReplaceAllString(line, "")
		}
	}
	return last
}
