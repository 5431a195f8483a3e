package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"slowpath/internal/house/golden"

	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// sweepSample is a sweep over loads that follow the law but for the last two points, where the generator is the limit.
func sweepSample(t *testing.T, axis string, sigma, kappa float64) *experiment.Sweep {
	t.Helper()
	a, err := experiment.ParseAxis(axis)
	if err != nil {
		t.Fatal(err)
	}
	load := 0
	s, err := experiment.MakeSweep(t.Context(), experiment.SweepOptions{
		Setup: experiment.Setup{
			DurationNs: 2e9,
			WarmUpNs:   5e8,
		}, Axis: a, Repeats: 3, Gain: 0.1, Seed: 1,
		Load: func(_ context.Context, value int) (experiment.Run, error) {
			load++
			n := float64(value)
			speed := 18000 * n / (1 + sigma*(n-1) + kappa*n*(n-1)) * (1 + 0.04*math.Sin(float64(load)))
			ns := int64(min(n/speed*1e9, 3.6e12/9)) // no load counts more than an hour
			return experiment.Run{
				RequestsPerSecond: speed, GeneratorLimited: value > 600,
				Latency: experiment.Latency{P50Ns: ns, P99Ns: 3 * ns, P999Ns: 5 * ns, MaxNs: 9 * ns},
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSweepGolden(t *testing.T) {
	s := sweepSample(t, "connections=1..1000", 0.04, 0.0002)
	for _, style := range []layout.Style{{Width: 80}, {Width: 80, Unicode: true}, {Width: 160, Unicode: true}} {
		var buf bytes.Buffer
		if err := Sweep(&buf, s, style); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, fmt.Sprintf("sweep.%d.%v.golden", style.Width, style.Unicode), buf.Bytes())
	}
}

// allWidths fails where a text is longer than its lines may be.
func allWidths(t *testing.T, print func(io.Writer, layout.Style) error) {
	t.Helper()
	for width := 40; width <= 240; width += 5 {
		var buf bytes.Buffer
		if err := print(&buf, layout.Style{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		if err := golden.Fits(buf.Bytes(), width); err != nil {
			t.Error(err)
		}
	}
}

func TestCapacityGolden(t *testing.T) {
	l, err := experiment.ParseLimit("p99<1ms")
	if err != nil {
		t.Fatal(err)
	}
	c, err := experiment.FindCapacity(t.Context(), experiment.CapacityOptions{
		Setup: experiment.Setup{DurationNs: 5e9},
		Limit: l, Start: 1000, MaxPerSecond: 1e6, Precision: 0.1, Confirm: 3,
		MaxRuns: 80, Load: func(_ context.Context, rate, _ float64) (experiment.Run, error) {
			lat := experiment.Latency{
				P50Ns: int64(1e5 / (1 - min(rate, 83999)/84000)),
				P99Ns: int64(3e5 / (1 - min(rate, 83999)/84000)),
			}
			return experiment.Run{Requests: int64(5 * rate), Latency: lat, Service: lat, LateP99Ns: 12000}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := Capacity(&buf, c, layout.Style{Width: 80, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "capacity.80.golden", buf.Bytes())
	allWidths(t, func(w io.Writer, s layout.Style) error { return Capacity(w, c, s) })
}

func TestRepeatsGolden(t *testing.T) {
	repeats := func(speed float64, connections int, b *experiment.Baseline) *experiment.Repeats {
		n := 0
		r, err := experiment.MakeRepeats(t.Context(), experiment.RepeatsOptions{
			Setup: experiment.Setup{
				DurationNs: 5e9,
				Settings:   map[string]any{"connections": connections},
			}, Repeats: 6, Baseline: b,
			Load: func(context.Context) (experiment.Run, error) {
				n++
				x := speed * (1 + 0.01*float64(n*5%7))
				return experiment.Run{
					RequestsPerSecond: x, CPUSecondsPerMillion: 5 + float64(n*3%5)/10,
					Latency: experiment.Latency{
						P50Ns: int64(5e10 / x), P99Ns: int64(9e10/x) * int64(1+n%2),
						P999Ns: 2e6,
					},
				}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	old := repeats(1e5, 50, nil)
	var buf bytes.Buffer
	for _, r := range []*experiment.Repeats{old, repeats(1.1e5, 60, &experiment.Baseline{
		Name:  "before.json",
		Setup: old.Setup, Runs: old.Runs,
	})} {
		if err := Repeats(&buf, r, layout.Style{Width: 80, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		allWidths(t, func(w io.Writer, s layout.Style) error { return Repeats(w, r, s) })
	}
	// When the baseline was made is shown in the time zone of the reader.
	golden.Check(t, "repeats.80.golden", bytes.ReplaceAll(buf.Bytes(),
		[]byte(old.Runs[0].Start.Local().Format("2006-01-02 15:04:05")), []byte("TIME")))
}

// targetsSample is targets of all kinds: the second has a round in which it is down, the last answers no INFO.
func targetsSample(t *testing.T, open bool) *experiment.Targets {
	t.Helper()
	infos := []experiment.ComparedTarget{
		{Address: "10.0.0.5:6379", Kind: experiment.Standalone, Server: "redis 7.0.15", Nodes: 1, Identity: "a"},
		{Address: "10.0.0.6:7000", Kind: experiment.Cluster, Server: "redis 7.0.15", Nodes: 3},
		{
			Address: "10.0.0.7:6379", Kind: experiment.Proxy, Process: "haproxy", Server: "redis 7.0.15",
			Identity: "a",
		},
		{Address: "10.0.0.8:22121", Kind: experiment.Proxy, Process: "nutcracker"},
		{Address: "a-rather-long-name.of-a-service.example.com:6379", Kind: experiment.Unknown},
	}
	load, of := 0, []float64{1, 2.1, 0.69, 0.8, 0.997}
	s, err := experiment.MakeTargets(t.Context(), experiment.TargetsOptions{
		Setup: experiment.Setup{DurationNs: 2e9, WarmUpNs: 5e8}, Targets: len(infos), Rounds: 6, Open: open,
		Target: func(i int) experiment.ComparedTarget { return infos[i] },
		Load: func(_ context.Context, i int) (experiment.Run, error) {
			load++
			if i == 1 && load > 30 {
				return experiment.Run{}, errors.New("connecting to 10.0.0.6:7000: connection refused")
			}
			v := 1e5 * of[i] * (1 + 0.01*math.Sin(float64(load)))
			server, proxy := 9*of[i], 11.5
			r := experiment.Run{
				RequestsPerSecond: v, CPUSecondsPerMillion: 5 + math.Sin(float64(load)),
				Latency:   experiment.Latency{P50Ns: int64(5e10 / v), P99Ns: int64(15e10 / v)},
				LimitedBy: "server-cpu", Sentence: "server main thread at 99 %", ServerCPUSecondsPerMillion: &server,
			}
			switch i {
			case 1:
				r.LimitedBy, r.GeneratorLimited = "generator-cpu", true
				r.Sentence = "its thread is at 98 %; --threads 2"
			case 2:
				r.ProxyCPUSecondsPerMillion, r.ErrorShare = &proxy, 0.02
			case 3:
				r.ServerCPUSecondsPerMillion, r.ProxyCPUSecondsPerMillion = nil, &proxy
			}
			return r, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTargetsGolden(t *testing.T) {
	for _, style := range []layout.Style{{Width: 80}, {Width: 80, Unicode: true}, {Width: 160, Unicode: true}} {
		var buf bytes.Buffer
		if err := Targets(&buf, targetsSample(t, false), style); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, fmt.Sprintf("targets.%d.%v.golden", style.Width, style.Unicode), buf.Bytes())
	}
	var buf bytes.Buffer
	if err := Targets(&buf, targetsSample(t, true), layout.Style{Width: 80, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "targets.open.80.golden", buf.Bytes())
}

// TestWideIntervals: a long tail on one side is not shown on both, and noise alone as no number.
func TestWideIntervals(t *testing.T) {
	for _, c := range []struct {
		value, low, high float64
		want             string
	}{
		{-0.31, -0.33, -0.29, "-31 % ±2.0"},
		{-0.004, -0.015, 0.007, "-0.4 % ±1.1"},
		{1.4, 1.2, 1.6, "+140 % ±20"},
		{-0.15, -0.99, 2.83, "-99 to +283 %"},
		{-0.4, -0.98, 108, "-98 % to more"},
		{-0.0002, -0.02, 0.02, "+0.0 % ±2.0"},
	} {
		e := experiment.Estimate{Value: c.value, Low: &c.low, High: &c.high}
		if got := shareText(e, "%+"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestTargetsFit: no line is longer than the terminal, and each target has its column.
func TestTargetsFit(t *testing.T) {
	s := targetsSample(t, false)
	for _, width := range []int{40, 60, 80, 100, 200} {
		var buf bytes.Buffer
		if err := Targets(&buf, s, layout.Style{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(buf.String()) {
			if layout.Width(strings.TrimRight(line, "\n")) > width {
				t.Errorf("at %d: %q", width, line)
			}
		}
		for _, column := range []string{"A standalone", "B cluster of 3", "C haproxy", "D nutcracker", "E unknown"} {
			if !strings.Contains(buf.String(), " "+column) {
				t.Errorf("at %d: no %s", width, column)
			}
		}
	}
}

// TestSweepsFit: whatever the numbers, no line is longer than the terminal, and every point is in the picture.
func TestSweepsFit(t *testing.T) {
	for _, axis := range []string{
		"connections=1..2", "pipeline=1,1000000000", "threads=1..10", "rate=1..1000000000",
		"value-size=5,6,7",
	} {
		for _, kappa := range []float64{0, 1e-9, 1} {
			s := sweepSample(t, axis, 0.5, kappa)
			for _, width := range []int{40, 60, 80, 100, 200, 240} {
				var buf bytes.Buffer
				if err := Sweep(&buf, s, layout.Style{Width: width}); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(buf.String()) {
					if layout.Width(strings.TrimRight(line, "\n")) > width {
						t.Errorf("%s at %d: %q", axis, width, line)
					}
				}
			}
		}
	}
}
