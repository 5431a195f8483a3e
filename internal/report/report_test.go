package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

func TestRowsMergeIntoEight(t *testing.T) {
	for _, n := range []int{1, 8, 9, 40, 3000} {
		w := verdict.Worst{Ns: 61 * ms, Segments: many(61*ms, n)}
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
	if err := Text(&buf, d, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), "unexplained - no source saw") {
		t.Error(buf.String())
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
	finding := "cause layer title nodes slow_calls of excess_share claimed_share confidence grade samples evidence " +
		"against fix fix_steps see"
	wantKeys(t, doc, "schema version target window sources populations latency verdict summary findings account "+
		"excess lost_time worst blind_spots cost")
	lost := doc["lost_time"].(map[string]any)
	wantKeys(t, lost, "states causes")
	wantKeys(t, lost["states"].([]any)[0], "actor state ns")
	wantKeys(t, lost["causes"].([]any)[0], "cause ns cells overlaps")
	wantKeys(t, lost["causes"].([]any)[1], "cause because ns cells overlaps")
	wantKeys(t, lost["causes"].([]any)[1].(map[string]any)["overlaps"].([]any)[0], "cause ns")
	wantKeys(t, doc["excess"], "ns unexplained_ns callers_ns")
	wantKeys(t, doc["target"], "address kind server nodes")
	wantKeys(t, doc["window"], "start seconds")
	wantKeys(t, doc["latency"], "calls slow_calls slow_threshold_ns p50_ns p99_ns p999_ns max_ns")
	wantKeys(t, doc["sources"].([]any)[3], "name used why")
	wantKeys(t, doc["findings"].([]any)[0], finding)
	wantKeys(t, doc["findings"].([]any)[1], finding+" because")
	wantKeys(t, doc["findings"].([]any)[0].(map[string]any)["evidence"].([]any)[0], "source text value unit")
	wantKeys(t, doc["account"].([]any)[0], "actor state ns share lost_ns")
	wantKeys(t, doc["populations"].([]any)[0], "name calls slow_calls recorded_slow_calls failed_calls p50_ns p99_ns "+
		"p999_ns max_ns")
	wantKeys(t, doc["worst"].([]any)[0], "time source conn op node ns same_stall segments")
	wantKeys(t, doc["worst"].([]any)[1], "time source conn op node ns own_delay_ns same_stall segments")
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
	d := verdict.Diagnosis{Findings: []cause.Finding{{}}, Worst: []verdict.Worst{{}}}
	var buf bytes.Buffer
	if err := JSON(&buf, d); err != nil {
		t.Fatal(err)
	}
	if d.Findings[0].FixSteps != nil || d.Worst[0].Segments != nil || strings.Contains(buf.String(), "null") {
		t.Error(d, buf.String())
	}
}

func TestJSONRefusesNaN(t *testing.T) {
	var buf bytes.Buffer
	err := JSON(&buf, verdict.Diagnosis{Window: verdict.Window{Seconds: math.NaN()}})
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) || buf.Len() > 0 {
		t.Error(err, buf.String())
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	if err := Text(full{}, throttled(), layout.Style{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := JSON(full{}, throttled()); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
