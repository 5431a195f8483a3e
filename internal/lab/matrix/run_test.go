//go:build linux

package matrix

import (
	"testing"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
)

func TestMean(t *testing.T) {
	for _, test := range []struct {
		sum  clients.Summary
		want time.Duration
	}{{clients.Summary{}, 0}, {clients.Summary{Calls: 4, Histogram: protocol.Histogram{{100, 3}, {500, 1}}}, 200}} {
		if got := mean(test.sum); got != test.want {
			t.Errorf("%+v: %v, want %v", test.sum, got, test.want)
		}
	}
}
