package workload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// counts draws n keys and counts each.
func counts(d drawer, n int) []int {
	out, r, next := make([]int, d.n), newRNG(42), uint64(0)
	for range n {
		out[d.draw(&r, &next, 1)-d.keys.Low]++
	}
	return out
}

// fits says whether counts are a sample of probabilities: Pearson's chi squared over them, which has as mean the
// degrees of freedom and as variance twice that. Five standard deviations; the seed is fixed.
func fits(t *testing.T, what string, got []int, probability []float64) {
	t.Helper()
	n, chi, cells, restGot, restWant := 0, 0.0, 0, 0.0, 0.0
	for _, c := range got {
		n += c
	}
	for i, p := range probability {
		if want := p * float64(n); want < 10 { // rare ones together
			restGot, restWant = restGot+float64(got[i]), restWant+want
		} else {
			chi += (float64(got[i]) - want) * (float64(got[i]) - want) / want
			cells++
		}
	}
	if restWant > 10 {
		chi += (restGot - restWant) * (restGot - restWant) / restWant
		cells++
	}
	if limit := float64(cells) + 5*math.Sqrt(2*float64(cells)); chi > limit {
		t.Errorf("%s: chi squared %.0f over %d cells, at most %.0f", what, chi, cells, limit)
	}
}

func TestUniform(t *testing.T) {
	p := slices.Repeat([]float64{0.001}, 1000)
	fits(t, "uniform", counts(newDrawer(Keys{Low: 500, High: 1499}), 1_000_000), p)
}

func zipfProbabilities(n int, exponent float64) []float64 {
	p, total := make([]float64, n), 0.0
	for i := range p {
		p[i] = math.Pow(float64(i+1), -exponent)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// The ranks have the probabilities of the definition, for exponents below, at and above 1; Latest has them from the
// highest number down.
func TestZipf(t *testing.T) {
	draws := 500_000
	if testing.Short() { // with the race detector they take ten seconds
		draws = 100_000
	}
	for _, exponent := range []float64{0.3, 0.99, 1, 1.5, 3} {
		for _, n := range []int{1, 2, 10, 5000} {
			z, r, got := newZipf(uint64(n), exponent), newRNG(7), make([]int, n)
			for range draws {
				got[z.draw(&r)]++
			}
			fits(t, fmt.Sprintf("zipf %v of %d", exponent, n), got, zipfProbabilities(n, exponent))
		}
	}
	spread := counts(newDrawer(Keys{Low: 10, High: 1009, Dist: Zipf, Exponent: 1}), draws)
	latest := counts(newDrawer(Keys{Low: 10, High: 1009, Dist: Latest, Exponent: 1}), draws)
	p := zipfProbabilities(1000, 1)
	slices.Reverse(latest)
	fits(t, "latest", latest, p)
	hot := slices.Index(spread, slices.Max(spread))
	second := slices.Clone(spread)
	second[hot] = 0
	if d := slices.Index(second, slices.Max(second)) - hot; d > -100 && d < 100 {
		t.Errorf("the two hottest keys are %d apart", d)
	}
	slices.Sort(spread)
	slices.Reverse(spread)
	if share := float64(spread[0]) / float64(draws); math.Abs(share-p[0]) > 0.005 {
		t.Errorf("the hottest key has %v of the calls, want %v", share, p[0])
	}
}

// The spread of ranks is a permutation: each key is met.
func TestCoprime(t *testing.T) {
	for n := uint64(1); n < 2000; n++ {
		m, seen := coprime(n), make([]bool, n)
		for i := range n {
			seen[mulMod(i, m%max(n, 1), n)] = true
		}
		if slices.Contains(seen, false) && n > 1 {
			t.Fatalf("%d × … mod %d leaves numbers out", m, n)
		}
	}
	if got := mulMod(999_999_999_998, 999_999_999_997, 999_999_999_999); got != 2 { // -1 × -2
		t.Error(got)
	}
}

func TestGaussian(t *testing.T) {
	k := Keys{Low: 100, High: 299, Dist: Gaussian, Centre: 150, Deviation: 40}
	p, total := make([]float64, 200), 0.0
	for i := range p {
		x := func(v float64) float64 { return math.Erf((float64(i) + 100 + v - k.Centre) / k.Deviation / math.Sqrt2) }
		p[i] = x(0.5) - x(-0.5)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	fits(t, "gaussian", counts(newDrawer(k), 1_000_000), p)
}

// The streams of a workload meet every key, each once per round, however many they are.
func TestSequential(t *testing.T) {
	for _, streams := range []int{1, 3, 10, 17} {
		w := compiled(t, Options{Commands: []string{"GET {key}"}, Keys: Keys{Low: 5, High: 104, Dist: Sequential}})
		seen := map[int64]int{}
		for i := range streams {
			s := w.Stream(1, i, streams)
			own := (100 - i + streams - 1) / streams
			for range 2 * own {
				_, r := s.Next(nil)
				seen[r.Key]++
			}
		}
		for key := int64(5); key <= 104; key++ {
			if seen[key] != 2 {
				t.Fatalf("%d streams: key %d was met %d times, want 2", streams, key, seen[key])
			}
		}
	}
	w := compiled(t, Options{Commands: []string{"GET {key}"}, Keys: Keys{High: 2, Dist: Sequential}})
	s := w.Stream(1, 7, 10) // more streams than keys
	for range 10 {
		if _, r := s.Next(nil); r.Key != 1 {
			t.Error(r.Key)
		}
	}
}

func TestParseKeys(t *testing.T) {
	for text, want := range map[string]Keys{
		"1": {}, "1000000": {High: 999_999}, "1m": {High: 999_999},
		"10-19": {Low: 10, High: 19}, "1k-2k": {Low: 1000, High: 2000}, "1000g": {High: maxKey},
	} {
		if got, err := ParseKeys(text); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "x", "5-", "-5", "9-1", "1-1000g", "1001g", "1.5",
		"99999999999999999999", "20000000000g",
	} {
		if got, err := ParseKeys(text); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	base := Keys{Low: 100, High: 199}
	for text, want := range map[string]Keys{
		"uniform": {100, 199, Uniform, 0, 0, 0}, "zipf": {100, 199, Zipf, 0.99, 0, 0}, "zipf:1.2": {
			100, 199, Zipf, 1.2,
			0, 0,
		},
		"latest:2": {100, 199, Latest, 2, 0, 0}, "sequential": {100, 199, Sequential, 0, 0, 0},
		"gaussian": {100, 199, Gaussian, 0, 149.5, 100.0 / 6}, "gaussian:120,5": {100, 199, Gaussian, 0, 120, 5},
	} {
		if got, err := base.ParseDist(text); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "pareto", "zipf:", "zipf:0", "zipf:-1", "zipf:NaN", "zipf:11", "uniform:1",
		"gaussian:1", "gaussian:99,5", "gaussian:120,0", "gaussian:120,x", "gaussian:NaN,1", "gaussian:120,Inf",
	} {
		if got, err := base.ParseDist(text); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

func TestSizes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sizes")
	if err := os.WriteFile(file, []byte("# bytes weight\n10 3\n\n1kb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text      string
		low, high int
		mean      float64 // ± 1 %
	}{
		{"0", 0, 0, 0},
		{"100", 100, 100, 100},
		{"4kb", 4096, 4096, 4096},
		{"1k", 1000, 1000, 1000},
		{"100-1000", 100, 1000, 550},
		{"2m", 2_000_000, 2_000_000, 2e6},
		{"lognormal:100,0", 100, 100, 100},
		{"lognormal:1000,1", 26, 38_000, 1000 * math.Exp(0.5)},
		{"100:3,1000:1", 100, 1000, 325},
		{"7,7", 7, 7, 7},
		{"1:1e6,9:1", 1, 9, 1},
		{"file:" + file, 10, 1024, 263.5},
	} {
		s, err := ParseSizes(tt.text, os.ReadFile)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		r, sum := newRNG(5), 0.0
		const n = 200_000
		for range n {
			size := s.draw(&r)
			sum += float64(size)
			if size < s.low || size > s.Max() || !s.has(size) {
				t.Fatalf("%s: drew %d", tt.text, size)
			}
		}
		low := float64(s.low) < float64(tt.low)*0.9 || float64(s.low) > float64(tt.low)*1.1
		high := float64(s.high) < float64(tt.high)*0.8 || float64(s.high) > float64(tt.high)*1.2
		if low || high || math.Abs(sum/n-tt.mean) > 0.02*tt.mean || math.Abs(s.Mean()-tt.mean) > 0.01*tt.mean {
			t.Errorf("%s: %d to %d, mean %v, of the draws %v", tt.text, s.low, s.high, s.Mean(), sum/n)
		}
	}
	for _, text := range []string{
		"", "x", "-1", "5-1", "513mb", "1gb", "1bk", "lognormal:", "lognormal:0,1",
		"lognormal:1,-1", "lognormal:1,6", "lognormal:1", "lognormal:1,NaN", "1:-1", "1:0", "1:x", ",", "file:/no/such",
		"99999999999",
	} {
		if s, err := ParseSizes(text, os.ReadFile); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %+v %v", text, s, err)
		}
	}
	if s := FixedSize(10); s.has(9) || s.has(11) {
		t.Error("a fixed size has others")
	}
}

func FuzzParseOptions(f *testing.F) {
	for _, s := range []string{
		"100", "1-2", "lognormal:100,1.5", "1:2,3:4", "zipf:1.2", "gaussian:5,1", "1000m",
		"compressible:50%", "zero",
	} {
		f.Add(s)
	}
	none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
	f.Fuzz(func(t *testing.T, text string) {
		r := newRNG(1)
		if s, err := ParseSizes(text, none); err == nil {
			if n := s.draw(&r); n < 0 || n > MaxValueBytes || !s.has(n) {
				t.Fatalf("sizes %q: %d", text, n)
			}
		}
		if k, err := ParseKeys(text); err == nil && k.check() != nil {
			t.Fatalf("keys %q: %+v", text, k)
		}
		if k, err := (Keys{Low: 3, High: 12}).ParseDist(text); err == nil {
			d, next := newDrawer(k), uint64(0)
			for range 20 {
				if n := d.draw(&r, &next, 3); n < 3 || n > 12 {
					t.Fatalf("distribution %q: %d", text, n)
				}
			}
		}
		if c, err := ParseContent(text, none); err == nil && !(c.zeros >= 0 && c.zeros <= 1) {
			t.Fatalf("content %q: %+v", text, c)
		}
	})
}
