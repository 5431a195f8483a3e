package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// profileGroup is the profiles of one kind of one application.
type profileGroup struct {
	subject, kind string
	bodies        [][]byte
	what          recording.Profiled
}

// kinds says what the kinds of profiles show, for titles.
var kinds = map[string]string{
	recording.ProfileGoroutine: "where goroutines were",
	recording.ProfileMutex:     "delay at mutexes, of those that held them",
	recording.ProfileBlock:     "delay of those that waited",
	recording.ProfileCPU:       "CPU time, by the runtime of Go",
	recording.ProfileThreads:   "where threads were",
	recording.ProfileCPUClock:  "CPU time, by samples of the kernel",
	recording.ProfilePython:    "where threads of Python were, by samples",
	recording.ProfileRuby:      "where threads of Ruby were, by samples",
}

// title says what is drawn.
func (g profileGroup) title() string {
	who := g.subject
	if g.what.Name != "" && g.what.PID != 0 {
		who = fmt.Sprintf("%s[%d]", g.what.Name, g.what.PID)
	} else if g.what.Name != "" && g.what.Address != "" && g.what.Name != g.what.Address {
		who = fmt.Sprintf("%s (%s)", g.what.Name, g.what.Address)
	}
	if g.what.Node != "" {
		who += ", the server " + g.what.Node
	}
	if what, ok := kinds[g.kind]; ok {
		return who + ": " + what
	}
	return who + ": " + g.kind
}

// topFunctions is how many the table below a flame graph has.
const topFunctions = 12

// WriteProfiles writes the profiles of a recording into a directory: for pprof, as collapsed stacks, and drawn as flame
// graphs in a page. It gives how many there are; without one, nothing is written.
func WriteProfiles(rec *recording.Recording, dir, title string) (profiles int, page string, err error) {
	groups := profileGroups(rec)
	if len(groups) == 0 {
		return 0, "", nil
	}
	if err := outfile.Directory(dir); err != nil {
		return 0, "", err
	}
	var flames []Flame
	for _, g := range groups {
		f, err := g.write(dir)
		if err != nil {
			return 0, "", err
		}
		flames = append(flames, f)
		if g.kind == recording.ProfileCPUClock {
			flames = append(flames, slowFlame(rec, g)...)
		}
	}
	page = filepath.Join(dir, "flame.html")
	return len(groups), page, outfile.Write(page, func(w io.Writer) error { return FlamePage(w, title, flames) })
}

func profileGroups(rec *recording.Recording) (groups []profileGroup) {
	for _, p := range rec.Profiles {
		i := slices.IndexFunc(groups, func(g profileGroup) bool { return g.subject == p.Subject && g.kind == p.Kind })
		if i < 0 {
			i = len(groups)
			g := profileGroup{subject: p.Subject, kind: p.Kind}
			if s, ok := rec.SnapshotOf(recording.SourceProfile, p.Subject, recording.SnapshotApplication); ok {
				_ = json.Unmarshal([]byte(s.Body), &g.what) // a damaged snapshot is as good as none
			}
			groups = append(groups, g)
		}
		groups[i].bodies = append(groups[i].bodies, p.Pprof)
	}
	slices.SortFunc(groups, func(a, b profileGroup) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.kind, b.kind))
	})
	return groups
}

// write adds the readings up: of goroutines a sum over the readings, whose shares are those of the watch.
func (g profileGroup) write(dir string) (Flame, error) {
	sum, err := stacks.Sum(g.bodies...)
	if err != nil {
		return Flame{}, fmt.Errorf("%s of %s: %w", g.kind, g.subject, err)
	}
	p, err := stacks.Read(sum)
	if err != nil {
		return Flame{}, fmt.Errorf("%s of %s: %w", g.kind, g.subject, err)
	}
	name := filepath.Join(dir, fileName(g.subject)+"-"+fileName(g.kind))
	column := len(p.Types) - 1 // pprof's own default: the time where there is one
	err = errors.Join(
		outfile.Write(name+".pb.gz", func(w io.Writer) error { _, err := w.Write(sum); return err }),
		outfile.Write(name+".collapsed", func(w io.Writer) error { return stacks.Collapse(w, p, column) }))
	f := Flame{Title: g.title(), Root: stacks.Graph(p, column), Top: stacks.Top(p, column, topFunctions)}
	if len(g.bodies) > 1 {
		f.Note = fmt.Sprintf("Sum of %d readings.", len(g.bodies))
	}
	if at := p.Column("samples"); g.kind == recording.ProfileCPUClock && at >= 0 {
		f.Note = fmt.Sprintf("%s: a share of 10 %% is good to %.1f points (one standard error).",
			format.Count(p.Total(at), "sample"), 30/math.Sqrt(float64(max(p.Total(at), 1))))
	}
	if column >= 0 {
		f.Unit = p.Types[column].Unit
	}
	return f, err
}

// slowFlame draws what a process used the CPU for while calls were slow, in colours against the rest of the watch.
// There is none where one of the two has hardly a sample.
func slowFlame(rec *recording.Recording, g profileGroup) []Flame {
	slow, rest := verdict.SlowAndRest(rec, g.subject)
	column := slow.Column("cpu")
	n := slow.Total(slow.Column("samples"))
	if column < 0 || n < degree.Many || rest.Total(column) == 0 {
		return nil
	}
	return []Flame{{
		Title: g.title() + ", while calls were slow", Unit: "nanoseconds",
		Root: stacks.Graph(slow, column), Top: stacks.Top(slow, column, topFunctions),
		Baseline: stacks.Graph(rest, column), BaselineName: "otherwise",
		Note: fmt.Sprintf("%s. Red is a larger share than in the rest of the watch, blue a smaller one.",
			format.Count(n, "sample")),
	}}
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
