package protocol

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFloorKeepsEightDigits(t *testing.T) {
	for _, test := range []struct{ v, want time.Duration }{
		{-1, 0},
		{0, 0},
		{1, 1},
		{255, 255},
		{256, 256},
		{257, 256},
		{511, 510},
		{512, 512},
		{515, 512},
		{516, 516},
		{1_000_000, 999_424},
		{time.Second, 998_244_352},
		{math.MaxInt64, 255 << 55},
	} {
		if got := Floor(test.v); got != test.want {
			t.Errorf("Floor(%d) = %d, want %d", test.v, got, test.want)
		}
	}
}

func TestFloorProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := time.Duration(rapid.Int64Min(0).Draw(t, "v"))
		f := Floor(v)
		if f > v || float64(v-f) > float64(v)/128 || Floor(f) != f {
			t.Errorf("Floor(%d) = %d, Floor of that %d", v, f, Floor(f))
		}
		if w := time.Duration(rapid.Int64Range(0, int64(v)).Draw(t, "w")); Floor(w) > f {
			t.Errorf("Floor(%d) = %d, Floor(%d) = %d", w, Floor(w), v, f)
		}
		if i := bucketIndex(v); bucketValue(i) != f || i > 0 && bucketValue(i-1) >= f {
			t.Errorf("bucket %d of %d", i, v)
		}
	})
}

func TestQuantile(t *testing.T) {
	h := Histogram{{10, 50}, {20, 49}, {30, 1}}
	for _, test := range []struct {
		q    float64
		want time.Duration
	}{{-1, 10}, {0, 10}, {0.5, 10}, {0.51, 20}, {0.99, 20}, {0.991, 30}, {1, 30}, {2, 30}} {
		if got := h.Quantile(test.q); got != test.want {
			t.Errorf("quantile %v: %v, want %v", test.q, got, test.want)
		}
	}
	if got := (Histogram{}).Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
