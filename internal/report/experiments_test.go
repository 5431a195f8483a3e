package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

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
		golden(t, fmt.Sprintf("sweep.%d.%v.golden", style.Width, style.Unicode), buf.Bytes())
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
	golden(t, "capacity.80.golden", buf.Bytes())
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
	}
	// When the baseline was made is shown in the time zone of the reader.
	golden(t, "repeats.80.golden", bytes.ReplaceAll(buf.Bytes(),
		[]byte(old.Runs[0].Start.Local().Format("2006-01-02 15:04:05")), []byte("TIME")))
}

// TestSweepsFit: whatever the numbers, no line is longer than the terminal, and every point is in the picture.
func TestSweepsFit(t *testing.T) {
	for _, axis := range []string{
		"connections=1..2", "pipeline=1,1000000000", "threads=1..10", "rate=1..1000000000",
		"value-size=5,6,7",
	} {
		for _, kappa := range []float64{0, 1e-9, 1} {
			s := sweepSample(t, axis, 0.5, kappa)
			for _, width := range []int{80, 100, 200} {
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
