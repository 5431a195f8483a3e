package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/stacks"
)

// profileGroup is the profiles of one kind of one application.
type profileGroup struct {
	subject, kind string
	bodies        [][]byte
}

// writeProfiles writes the profiles of a recording into a directory: for pprof, as collapsed stacks, and drawn as flame graphs.
func (a *app) writeProfiles(path, dir string) error {
	rec, err := openRecording(path)
	if err != nil {
		return err
	}
	groups := profileGroups(rec)
	if len(groups) == 0 {
		return usagef("%s holds no profiles: record with --pprof ADDRESS", path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("--profiles: %w", err)
	}
	var flames []report.Flame
	for _, g := range groups {
		f, err := g.write(dir)
		if err != nil {
			return usagef("--profiles: %w", err)
		}
		flames = append(flames, f)
	}
	page := filepath.Join(dir, "flame.html")
	err = writeFile(page, func(w io.Writer) error { return report.FlamePage(w, "Profiles of "+filepath.Base(path), flames) })
	if err != nil {
		return usagef("--profiles: %w", err)
	}
	fmt.Fprintf(a.stderr, "%d profiles are in %s, drawn in %s; go tool pprof reads NAME.pb.gz, flamegraph.pl and speedscope NAME.collapsed\n", len(groups), report.OneLine(dir), report.OneLine(page))
	return nil
}

func profileGroups(rec *recording.Recording) (groups []profileGroup) {
	for _, p := range rec.Profiles {
		i := slices.IndexFunc(groups, func(g profileGroup) bool { return g.subject == p.Subject && g.kind == p.Kind })
		if i < 0 {
			i = len(groups)
			groups = append(groups, profileGroup{subject: p.Subject, kind: p.Kind})
		}
		groups[i].bodies = append(groups[i].bodies, p.Pprof)
	}
	slices.SortFunc(groups, func(a, b profileGroup) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.kind, b.kind))
	})
	return groups
}

// write adds the readings up: of goroutines a sum over the readings, whose shares are those of the watch.
func (g profileGroup) write(dir string) (report.Flame, error) {
	sum, err := stacks.Sum(g.bodies...)
	if err != nil {
		return report.Flame{}, fmt.Errorf("%s of %s: %w", g.kind, g.subject, err)
	}
	p, err := stacks.Read(sum)
	if err != nil {
		return report.Flame{}, fmt.Errorf("%s of %s: %w", g.kind, g.subject, err)
	}
	name := filepath.Join(dir, fileName(g.subject)+"-"+fileName(g.kind))
	column := len(p.Types) - 1 // pprof's own default: the time where there is one
	err = errors.Join(
		writeFile(name+".pb.gz", func(w io.Writer) error { _, err := w.Write(sum); return err }),
		writeFile(name+".collapsed", func(w io.Writer) error { return stacks.Collapse(w, p, column) }))
	f := report.Flame{Title: fmt.Sprintf("%s of %s", g.kind, g.subject), Root: stacks.Graph(p, column)}
	if len(g.bodies) > 1 {
		f.Title += fmt.Sprintf(", sum of %d readings", len(g.bodies))
	}
	if column >= 0 {
		f.Unit = p.Types[column].Unit
	}
	return f, err
}

// fileName is what of a subject a file may be called.
func fileName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s), "-.")
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
