package apps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/lab/apps/appsources/meter"
	"slowpath/internal/lab/clients/programs/protocol"
)

// TestMeterCounts: what a meter writes is what the collector reads.
func TestMeterCounts(t *testing.T) {
	var out bytes.Buffer
	m := meter.New(&out)
	m.Add("page", 3*time.Millisecond, nil)
	m.Add("page", time.Millisecond, errors.New(strings.Repeat("x", 1000)))
	m.Add("job", 2*time.Second, nil)
	ended := make(chan struct{})
	close(ended)
	if err := m.Report(ended); err != nil {
		t.Fatal(err)
	}
	c := newCollector()
	for line := range bytes.Lines(out.Bytes()) {
		c.line(line)
	}
	c.line([]byte("a line of a log"))
	ops := c.stats().Operations()
	if len(ops) != 2 || ops[0].Name != "job" || ops[1].Done != 2 || ops[1].Errors != 1 ||
		ops[1].Sum != 4*time.Millisecond || ops[1].Max != 3*time.Millisecond ||
		len(ops[1].LastError) != meter.ErrorLimit {
		t.Errorf("%+v", ops)
	}
	if q := ops[1].Histogram.Quantile(1); q != protocol.Floor(3*time.Millisecond) {
		t.Errorf("the longest page took %v", q)
	}
	if c.end() != "a line of a log" {
		t.Errorf("log: %q", c.end())
	}
	select {
	case <-c.worked:
	default:
		t.Error("no operation has succeeded")
	}
	if left := c.stats().Since(time.Now().Add(time.Hour)); len(left.Lines) > 0 {
		t.Errorf("lines of the future: %v", left)
	}
}

// TestResolution: the meter and the client programs count in the same buckets.
func TestResolution(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, 255, 256, 257, 1023, time.Millisecond, 1<<62 + 12345} {
		if meter.Floor(d) != int64(protocol.Floor(d)) {
			t.Errorf("%d: %d and %d", d, meter.Floor(d), protocol.Floor(d))
		}
	}
}

// TestBadLines: what is not a line of the protocol is part of the log.
func TestBadLines(t *testing.T) {
	const good = `{"schema":"slowpath.app/v1","operation":"job","unix_second":1790000000,"done":2,"errors":1,` +
		`"sum_ns":300,"max_ns":200,"histogram":[[100,1],[200,1]]}`
	if _, err := parseLine([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"app/v1", "app/v2"},
		{`"job"`, `"Job 1"`},
		{"1790000000", "0"},
		{`"done":2`, `"done":3`},
		{`"done":2`, `"done":0`},
		{`"errors":1`, `"errors":3`},
		{`"errors":1`, `"errors":-1`},
		{`"max_ns":200`, `"max_ns":301`},
		{`"sum_ns":300`, `"sum_ns":-1`},
		{"[100,1]", "[257,1]"},
		{"[100,1]", "[200,1]"},
		{"[100,1]", "[100,-1]"},
		{"[200,1]", "[200,2]"},
		{"{", "["},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := parseLine([]byte(bad)); !errors.Is(err, errLine) {
			t.Errorf("%s: %v", bad, err)
		}
		c := newCollector()
		if c.line([]byte(bad)); len(c.stats().Lines) > 0 || c.end() == "" {
			t.Errorf("%s is counted", bad)
		}
	}
}

// TestOutputIsBounded: neither lines nor the log of an application fill the memory.
func TestOutputIsBounded(t *testing.T) {
	c := newCollector()
	c.lines = make([]Line, linesLimit-5)
	for i := range 1000 {
		c.line(fmt.Appendf(nil, `{"schema":"slowpath.app/v1","operation":"job","unix_second":%d,"done":1,"errors":0,`+
			`"sum_ns":1,"max_ns":1,"histogram":[[1,1]]}`, i+1))
	}
	if n := len(c.stats().Lines); n != linesLimit {
		t.Errorf("%d lines", n)
	}
	if n := len(c.end()); n == 0 || n > logLimit {
		t.Errorf("%d bytes of log", n)
	}
}

// FuzzLine: a line is refused, or its sums are consistent.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"schema":"slowpath.app/v1","operation":"job","unix_second":1,"done":1,"errors":0,"sum_ns":1,` +
		`"max_ns":1,"histogram":[[1,1]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseLine(text)
		if err != nil {
			return
		}
		if o := (Stats{[]Line{l}}).Operations(); len(o) != 1 || o[0].Histogram.Count() != l.Done {
			t.Errorf("%s: %+v", text, o)
		}
		if _, err := json.Marshal(l); err != nil {
			t.Error(err)
		}
	})
}
