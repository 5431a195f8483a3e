package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 µs", 1: "0.001 µs", 123: "0.12 µs", 1_000: "1.00 µs",
		84_049: "84.0 µs", 999_400: "999 µs", 999_500: "1.00 ms",
		9_996_000: "10.0 ms", 99_960_000: "100 ms", 84_912_000: "84.9 ms", 1_523_000_000: "1.52 s",
		3_600_000_000_000: "3600 s", -1_500_000: "-1.50 ms",
	} {
		if got := duration(ns); got != want {
			t.Errorf("duration(%d) = %s, want %s", ns, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.0062: "0.6 %", 0.07: "7.0 %", 0.97: "97 %", 1: "100 %",
		-1: "? %", math.Inf(1): "? %",
	} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %s, want %s", share, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                       "plain text",
		"a\x1b[31mred\x1b[0m":              "ared",
		"title\x1b]0;owned\x07!":           "title!",
		"title\x1b]0;owned\x1b\\!":         "title!",
		"8-bit \u009b2Jclear":              "8-bit clear",
		"query\x1bP$q\x1b\\.":              "query.",
		"split \x1b\x1b[31m[31mred":        "split [31mred",
		"open \x1b]0;never closed":         "open 0;never closed",
		"line\r\nbreak\ttab":               "line  break tab",
		"a\x00b\x07c\x7fd":                 "abcd",
		"reversed \u202egnp.exe\u2066":     "reversed gnp.exe",
		"invisible a\u200bb\u00adc\ufeffd": "invisible abcd",
		"bad \xff\xfe bytes":               "bad ? bytes",
		"größe 名前 µs":                      "größe 名前 µs",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSteps(t *testing.T) {
	c := func(s string) step { return step{true, s} }
	s := func(s string) step { return step{false, s} }
	for in, want := range map[string][]step{
		"":                                    nil,
		"echo max > /sys/fs/cgroup/a/cpu.max": {c("echo max > /sys/fs/cgroup/a/cpu.max")},
		"CONFIG SET maxclients 20000":         {c("CONFIG SET maxclients 20000")},
		"Use fewer keys.":                     {s("Use fewer keys.")},
		"If it is stopped now: kill -CONT 17": {s("If it is stopped now:"), c("kill -CONT 17")},
		"Move it: taskset -cp 3 17, or renice -n 10 -p 17": {
			s("Move it:"),
			c("taskset -cp 3 17"), s("or"), c("renice -n 10 -p 17"),
		},
		"Thaw it: echo THAWED > freezer.state (cgroup v1) or echo 0 > cgroup.freeze": {
			s("Thaw it:"),
			c("echo THAWED > freezer.state   # cgroup v1"), s("or"), c("echo 0 > cgroup.freeze"),
		},
		"kill\x1b[2J -CONT 17\n18": {c("kill -CONT 17 18")},
	} {
		if got := steps(in); !slices.Equal(got, want) {
			t.Errorf("steps(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestRowsMergeIntoEight(t *testing.T) {
	for _, n := range []int{1, 8, 9, 40, 3000} {
		w := cause.Worst{Ns: 61 * ms, Segments: many(61*ms, n)}
		got := rows(w)
		if len(got) > maxRows || n <= maxRows && len(got) != n {
			t.Errorf("%d segments became %d rows", n, len(got))
		}
		at, segments := int64(0), 0
		for _, r := range got {
			if r.fromNs != at {
				t.Errorf("%d segments: a row starts at %d, the one before ended at %d", n, r.fromNs, at)
			}
			at = r.toNs
			segments += 1 + r.others
		}
		if at != w.Ns || segments != n {
			t.Errorf("%d segments: the rows hold %d segments and end at %d of %d", n, segments, at, w.Ns)
		}
	}
}

func TestUnexplainedIsNeverHidden(t *testing.T) {
	d := throttled()
	d.Account[2].Share = 0.0001
	var buf bytes.Buffer
	if err := Text(&buf, d, Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), "unexplained - no source saw") {
		t.Error(buf.String())
	}
}

func TestStyleOfPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, c := range []struct {
		env     map[string]string
		unicode bool
	}{
		{nil, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
	} {
		got := StyleOf(w, func(k string) string { return c.env[k] })
		if want := (Style{Width: 80, Unicode: c.unicode}); got != want {
			t.Errorf("%v: %+v, want %+v", c.env, got, want)
		}
	}
}

// TestJSONKeys compares with the contract of docs/json.md, key by key.
func TestJSONKeys(t *testing.T) {
	var buf bytes.Buffer
	if err := JSON(&buf, throttled()); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(buf.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	finding := "cause layer title slow_calls of excess_share confidence evidence against fix see"
	wantKeys(t, doc, "schema version target window sources latency verdict summary findings account excess worst "+
		"blind_spots cost")
	wantKeys(t, doc["excess"], "ns unexplained_ns")
	wantKeys(t, doc["target"], "address kind server nodes")
	wantKeys(t, doc["window"], "start seconds")
	wantKeys(t, doc["latency"], "calls slow_calls slow_threshold_ns p50_ns p99_ns p999_ns max_ns")
	wantKeys(t, doc["sources"].([]any)[3], "name used why")
	wantKeys(t, doc["findings"].([]any)[0], finding)
	wantKeys(t, doc["findings"].([]any)[1], finding+" because")
	wantKeys(t, doc["findings"].([]any)[0].(map[string]any)["evidence"].([]any)[0], "source text value unit")
	wantKeys(t, doc["account"].([]any)[0], "actor state ns share")
	wantKeys(t, doc["worst"].([]any)[0], "time source conn op node ns segments")
	wantKeys(t, doc["blind_spots"].([]any)[0], "what why enable")
	if !strings.HasSuffix(buf.String(), "}\n") {
		t.Error("no newline at the end")
	}
}

func wantKeys(t *testing.T, object any, keys string) {
	t.Helper()
	got := map[string]bool{}
	for k := range object.(map[string]any) {
		got[k] = true
	}
	want := map[string]bool{}
	for _, k := range strings.Fields(keys) {
		want[k] = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

func TestJSONLeavesTheDiagnosisAlone(t *testing.T) {
	d := cause.Diagnosis{Findings: []cause.Finding{{}}, Worst: []cause.Worst{{}}}
	var buf bytes.Buffer
	if err := JSON(&buf, d); err != nil {
		t.Fatal(err)
	}
	if d.Findings[0].Fix != nil || d.Worst[0].Segments != nil || strings.Contains(buf.String(), "null") {
		t.Error(d, buf.String())
	}
}

func TestJSONRefusesNaN(t *testing.T) {
	var buf bytes.Buffer
	err := JSON(&buf, cause.Diagnosis{Window: cause.Window{Seconds: math.NaN()}})
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) || buf.Len() > 0 {
		t.Error(err, buf.String())
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	if err := Text(full{}, throttled(), Style{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := JSON(full{}, throttled()); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
