package protocol

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// good is a summary of three calls.
const good = `{"schema":"slowpath.client/v1","library":"x 1","calls":3,"errors":1,"errors_by_kind":{"timeout":1},
"start_unix_ns":5,"ran_ns":1500000000,
"per_second":[{"calls":1,"errors":0},{"calls":2,"errors":1}],"histogram":[[1000,2],[2000,1]],
"max_ns":2001,"cpu_ns":1,"dials":2,
"pool":{"connections":2,"idle":1}}`

func TestParseSummary(t *testing.T) {
	s, err := ParseSummary([]byte("\n" + good + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Histogram.Quantile(0.5) != 1000 || s.Pool.Connections != 2 || s.PerSecond[1].Calls != 2 {
		t.Errorf("%+v", s)
	}
	if got := s.PerSecondMean(); got < 1.33 || got > 1.34 {
		t.Errorf("%v calls per second", got)
	}
}

func TestParseSummaryRefuses(t *testing.T) {
	replaced := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("nothing to replace: %s", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, test := range map[string]struct{ text, says string }{
		"nothing":             {" \n", "printed nothing"},
		"text":                {"Hello", "invalid character"},
		"two documents":       {good + good, "invalid character"},
		"an older protocol":   {replaced("client/v1", "client/v0"), "schema"},
		"a missing call":      {replaced(`"calls":3`, `"calls":4`), "calls: 4, by the histogram 3"},
		"a missing second":    {replaced(`{"calls":1,"errors":0},`, ""), "by the seconds 2"},
		"too many in one":     {replaced(`{"calls":2,`, `{"calls":9,`), "9 calls"},
		"errors without kind": {replaced(`{"timeout":1}`, `{}`), "by their kinds 0"},
		"negative kinds":      {replaced(`{"timeout":1}`, `{"timeout":2,"other":-1}`), "errors_by_kind"},
		"values that fall":    {replaced("[1000,2],[2000,1]", "[2000,1],[1000,2]"), "values rise"},
		"a finer value":       {replaced("[2000,1]", "[2001,1]"), "binary digits"},
		"an empty bucket":     {replaced("[1000,2]", "[999,0],[1000,2]"), "binary digits"},
		"a negative count":    {replaced("[1000,2]", "[1000,-2]"), "-2 calls"},
		"an overflow": {
			replaced("[1000,2],[2000,1]", "[1000,9007199254740992],[2000,9007199254740992]"),
			"calls of 2000 ns",
		},
		"a negative time": {replaced(`"ran_ns":1500000000`, `"ran_ns":-1`), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSummary([]byte(test.text))
			if !errors.Is(err, ErrSummary) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// FuzzParseSummary: what is accepted as a summary is the same when it is written and read again.
func FuzzParseSummary(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"schema":"slowpath.client/v1"}`))
	f.Add([]byte(`{"schema":"slowpath.client/v1","calls":1,"histogram":[[9223372036854775807,1]],
"per_second":[{"calls":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSummary(text)
		if err != nil {
			if !errors.Is(err, ErrSummary) {
				t.Errorf("%v", err)
			}
			return
		}
		if s.Histogram.Count() != s.Calls || s.Errors > s.Calls || s.Errors < 0 {
			t.Errorf("%+v", s)
		}
		last := time.Duration(0)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			if v := s.Histogram.Quantile(q); v < last {
				t.Errorf("quantile %v is %v, a smaller one %v", q, v, last)
			} else {
				last = v
			}
		}
		_ = s.String()
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if s2, err := ParseSummary(again); err != nil || s2.String() != s.String() || !reflect.DeepEqual(s2.Histogram,
			s.Histogram) {
			t.Errorf("%v: %s", err, again)
		}
	})
}
