// Command rejudge judges recordings once as they are, and then once for each bound and factor, and writes what changed.
// internal/diagnose/sensitivity builds it with bounds that can be scaled, and runs it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/sensitivity/scale"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// result is what is written for each bound, a line of JSON.
type result struct {
	Bound int `json:"bound"`
	Read  int `json:"read"` // recordings whose diagnosis reads it
	// Changes at each factor: of the recordings, and what changed.
	Changes map[string][]change `json:"changes"`
}

type change struct {
	Recording string `json:"recording"`
	// First is the first finding before and after, where it changed: a cause, or the verdict where nothing is found.
	First string `json:"first,omitempty"`
	// Found are other findings that appeared (+) or vanished (-).
	Found string `json:"found,omitempty"`
}

// judged is a recording and what it is judged to be.
type judged struct {
	name string
	rec  *recording.Recording
	base []string
	read []bool
}

func main() {
	count := flag.Int("count", 0, "how many bounds there are")
	wanted := flag.String("wanted", "", "numbers of the bounds to scale, with commas")
	factors := flag.String("factors", "0.7,1.3", "factors, with commas")
	dir := flag.String("recordings", "", "a directory of recordings (*.slowpath) instead of the corpus")
	flag.Parse()
	if err := run(*count, *wanted, *factors, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(count int, wanted, factors, dir string) error {
	var list []int
	if err := json.Unmarshal([]byte("["+wanted+"]"), &list); err != nil {
		return fmt.Errorf("--wanted: %w", err)
	}
	var by []float64
	if err := json.Unmarshal([]byte("["+factors+"]"), &by); err != nil {
		return fmt.Errorf("--factors: %w", err)
	}
	all, err := read(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range all {
		scale.Set(count, -1, 1)
		all[i].base = found(all[i].rec)
		all[i].read = slices.Clone(scale.Read())
		scale.Set(count, count-1, 1) // with what is kept
		if again := found(all[i].rec); !slices.Equal(all[i].base, again) {
			return fmt.Errorf("%s is judged %v, and %v with what is kept", all[i].name, all[i].base, again)
		}
	}
	fmt.Fprintf(os.Stderr, "%d recordings judged in %.1f s\n", len(all), time.Since(began).Seconds())
	out := json.NewEncoder(os.Stdout)
	for i, bound := range list {
		r := scaled(all, count, bound, by)
		if err := out.Encode(r); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%d of %d bounds, %.0f s\n", i+1, len(list), time.Since(began).Seconds())
	}
	return nil
}

// scaled judges the recordings that read a bound again with each factor.
func scaled(all []judged, count, bound int, factors []float64) result {
	r := result{Bound: bound, Changes: map[string][]change{}}
	for _, j := range all {
		if !j.read[bound] {
			continue
		}
		r.Read++
		for _, by := range factors {
			scale.Set(count, bound, by)
			if c, ok := compare(j.name, j.base, found(j.rec)); ok {
				key := fmt.Sprint(by)
				r.Changes[key] = append(r.Changes[key], c)
			}
		}
	}
	return r
}

// found are the verdict's findings in their order; the verdict itself where there are none.
func found(rec *recording.Recording) (causes []string) {
	defer func() {
		if p := recover(); p != nil {
			causes = []string{fmt.Sprint("panic: ", p)} // an index that is a bound
		}
	}()
	d := verdict.Diagnose(rec, "sensitivity")
	for _, f := range d.Findings {
		causes = append(causes, f.Cause)
	}
	if d.Verdict != "findings" || len(causes) == 0 {
		causes = append([]string{d.Verdict}, causes...)
	}
	return causes
}

func compare(name string, was, is []string) (change, bool) {
	c := change{Recording: name}
	if was[0] != is[0] {
		c.First = was[0] + " -> " + is[0]
	}
	var others []string
	for _, x := range is {
		if !slices.Contains(was, x) && (c.First == "" || x != is[0]) {
			others = append(others, "+"+x)
		}
	}
	for _, x := range was {
		if !slices.Contains(is, x) && (c.First == "" || x != was[0]) {
			others = append(others, "-"+x)
		}
	}
	c.Found = strings.Join(others, " ")
	return c, c.First != "" || c.Found != ""
}

// read reads the recordings of a directory, or of the corpus, with all their sources.
func read(dir string) (all []judged, err error) {
	if dir != "" {
		paths, err := filepath.Glob(filepath.Join(dir, "*.slowpath"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			rec, err := recording.Open(path)
			if err != nil {
				return nil, err
			}
			all = append(all, judged{name: strings.TrimSuffix(filepath.Base(path), ".slowpath"), rec: rec})
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("no *.slowpath in %s", dir)
		}
		return all, nil
	}
	temporary, err := os.MkdirTemp("", "slowpath-sensitivity")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	for _, scenario := range corpus.Scenarios() {
		rec, err := corpus.Read(scenario, temporary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scenario, err)
		}
		all = append(all, judged{name: scenario, rec: rec})
	}
	return all, nil
}
