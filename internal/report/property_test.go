package report

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestTextProperty: whatever a diagnosis holds, the report has no line over its width but for commands and links, and
// nothing in it drives the terminal.
func TestTextProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := diagnoses(anyFloat, anyTime).Draw(t, "diagnosis")
		s := layout.Style{
			Width: rapid.IntRange(40, 240).Draw(t, "width"), Color: rapid.Bool().Draw(t, "color"),
			Unicode: rapid.Bool().Draw(t, "unicode"),
		}
		var buf bytes.Buffer
		if err := Text(&buf, d, s); err != nil {
			t.Fatal(err)
		}
		out := buf.String()
		if s.Color {
			out = colours.ReplaceAllString(out, "")
		}
		whole := pieces(d, s)
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if layout.Width(line) > s.Width && !whole[strings.TrimSpace(line)] {
				t.Fatalf("%d columns of %d: %q", layout.Width(line), s.Width, line)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || !s.Unicode && r > unicode.MaxASCII {
					t.Fatalf("%U in %q", r, line)
				}
			}
		}
	})
}

// pieces are the commands and links of a diagnosis as they are printed.
func pieces(d verdict.Diagnosis, s layout.Style) map[string]bool {
	p, out := newPage(s), map[string]bool{}
	for _, f := range d.Findings {
		for _, s := range f.FixSteps {
			out[p.Whole(s.Command)] = true
			out[strings.TrimSpace("undo: "+p.Whole(s.Undo))] = true
		}
		for _, u := range f.See {
			out[p.Whole(u)] = true
		}
	}
	return out
}

func TestJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := diagnoses(rapid.Float64Range(-1e300, 1e300), jsonTime).Draw(t, "diagnosis")
		var buf bytes.Buffer
		if err := JSON(&buf, d); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.ReplaceAll(buf.String(), "\n", "") {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%U in %q", r, buf.String())
			}
		}
		var got verdict.Diagnosis
		if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if want := listed(d); !reflect.DeepEqual(got, want) {
			t.Fatalf("came back as\n%+v, not\n%+v", got, want)
		}
	})
}

var (
	anyFloat = rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{
		math.NaN(),
		math.Inf(1), math.Inf(-1),
	}))
	anyTime  = rapid.Map(rapid.Int64(), func(s int64) time.Time { return time.Unix(s, 0) })
	jsonTime = rapid.Map(rapid.Int64Range(0, 4e9), func(s int64) time.Time { return time.Unix(s, s).UTC() })
	anyNs    = rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1e9))
	// anyText has words, characters of two columns and of none, controls, and sequences that drive a terminal.
	anyText = rapid.Custom(func(t *rapid.T) string {
		part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9/.:-]{1,90}`),
			rapid.SampledFrom([]string{
				"", " ", "server", "throttled",
				unexplained, "Use it: kill -CONT 17", " or echo 1 > x (v2)", "\x1b[31m", "\x1b]0;t\x07", "\u009b2J",
				"\x1bP", "\u202e", "\r\n", "12 ms", "接続", "e\u0301", "µs",
				"👩\u200d🚀", "👍🏽", "🇩🇪", "각", "☎\ufe0f", "\u0301\u0301", "ก้",
			}))
		return strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), rapid.SampledFrom([]string{"", " "}).Draw(t,
			"space"))
	})
)

// lostTimes are tables for some findings, or not for them.
func lostTimes(fs []cause.Finding) *rapid.Generator[verdict.LostTime] {
	return rapid.Custom(func(t *rapid.T) (l verdict.LostTime) {
		for range rapid.IntRange(0, 8).Draw(t, "columns") {
			l.States = append(l.States, verdict.LostState{
				Actor: anyText.Draw(t, "actor"), State: anyText.Draw(t, "state"), Ns: anyNs.Draw(t, "ns"),
			})
		}
		for i := range rapid.SampledFrom([]int{0, 1, len(fs) + 1}).Draw(t, "rows") {
			r := verdict.LostToCause{
				Cause: anyText.Draw(t, "cause"), Ns: anyNs.Draw(t, "ns"),
				Cells: rapid.SliceOfN(anyNs, 0, 9).Draw(t, "cells"),
			}
			if i > 0 {
				of := l.Causes[rapid.IntRange(0, i-1).Draw(t, "of")].Cause
				r.Because, r.Overlaps = of, []verdict.Overlap{{Cause: of, Ns: anyNs.Draw(t, "overlap")}}
			}
			l.Causes = append(l.Causes, r)
		}
		return l
	})
}

func diagnoses(float *rapid.Generator[float64], at *rapid.Generator[time.Time]) *rapid.Generator[verdict.Diagnosis] {
	return rapid.Custom(func(t *rapid.T) verdict.Diagnosis {
		text := func() string { return anyText.Draw(t, "text") }
		texts := func() []string { return rapid.SliceOfN(anyText, 0, 4).Draw(t, "texts") }
		evidence := rapid.SliceOfN(rapid.Custom(func(*rapid.T) cause.Evidence {
			return cause.Evidence{Source: text(), Text: text(), Value: float.Draw(t, "value"), Unit: text()}
		}), 0, 15)
		steps := func() []remedy.Step {
			kinds := []remedy.Kind{remedy.Command, remedy.Setting, remedy.Change, ""}
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) remedy.Step {
				return remedy.Step{
					ID: text(), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Text: text(), Command: text(),
					Library: text(), Option: text(), From: text(), To: text(), Where: text(), Undo: text(),
					Risk: text(), Restart: text(), Since: text(), Or: rapid.Bool().Draw(t, "or"),
					Asks:  append([]string(nil), texts()...),
					Proof: rapid.SampledFrom([]*remedy.Proof{nil, {Why: text()}, {Proven: true}}).Draw(t, "proof"),
				}
			}), 0, 4).Draw(t, "steps")
		}
		n := func() int { return rapid.Int().Draw(t, "n") }
		ns := func() int64 { return anyNs.Draw(t, "ns") }
		d := verdict.Diagnosis{
			Schema: verdict.Schema, Version: text(), Summary: text(),
			Verdict: rapid.SampledFrom([]string{"", verdict.Healthy, verdict.Findings, verdict.Inconclusive}).Draw(t,
				"verdict"),
			Target: verdict.Target{Address: text(), Kind: rapid.SampledFrom([]string{"cluster", "unknown"}).Draw(t,
				"kind"), Server: text(), Nodes: texts()},
			Window: verdict.Window{Start: at.Draw(t, "start"), Seconds: float.Draw(t, "seconds")},
			Latency: verdict.Latency{
				Calls: n(), SlowCalls: n(), SlowThresholdNs: ns(), P50Ns: ns(), P99Ns: ns(),
				P999Ns: ns(), MaxNs: ns(),
			},
			Cost: evidence.Draw(t, "cost"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "findings") {
			d.Findings = append(d.Findings, cause.Finding{
				Cause: text(), Layer: text(), Title: text(), SlowCalls: n(),
				Of: n(), ExcessShare: float.Draw(t, "excess"),
				Confidence: float.Draw(t, "confidence"), Evidence: evidence.Draw(t, "for"), Against: evidence.Draw(t,
					"against"), FixSteps: steps(), See: texts(), Because: text(), Nodes: texts(),
			})
		}
		for range rapid.IntRange(0, 4).Draw(t, "hops") {
			d.Hops = append(d.Hops, verdict.Hop{
				Node: text(), Kind: text(), Process: text(), Source: text(), Calls: n(), P50Ns: ns(), P99Ns: ns(),
				AddedP50Ns: ns(), AddedP99Ns: ns(), LostNs: ns(), Share: float.Draw(t, "share"), Actor: text(),
				State: text(), Culprit: text(), Summary: text(),
			})
		}
		for range rapid.IntRange(0, 5).Draw(t, "states") {
			d.Account = append(d.Account, verdict.State{Actor: text(), State: text(), Ns: ns(), Share: float.Draw(t,
				"share")})
		}
		d.LostTime = lostTimes(d.Findings).Draw(t, "lost time")
		for range rapid.IntRange(0, 4).Draw(t, "worst") {
			w := verdict.Worst{
				Time: at.Draw(t, "time"), Source: text(), Conn: text(), Op: text(), Node: text(), Ns: ns(),
			}
			for range rapid.IntRange(0, 12).Draw(t, "parts") {
				w.Segments = append(w.Segments, verdict.Part{
					Actor: text(), State: text(), FromNs: ns(), ToNs: ns(),
					Culprit: text(),
				})
			}
			d.Worst = append(d.Worst, w)
		}
		for range rapid.IntRange(0, 3).Draw(t, "spots") {
			d.BlindSpots = append(d.BlindSpots, recording.BlindSpot{What: text(), Why: text(), Enable: text()})
			d.Sources = append(d.Sources, recording.SourceStatus{
				Name: text(), Used: rapid.Bool().Draw(t, "used"),
				Why: text(),
			})
		}
		return d
	})
}
