package cost

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLongerPeriodIsOneNumber: the title of the option and the setting beside it name the same period. It was "ask
// every 30s" beside 5 * time.Minute.
func TestLongerPeriodIsOneNumber(t *testing.T) {
	for library, want := range map[string]map[time.Duration]string{
		"go-redis":     {6 * time.Second: "30 * time.Second", time.Minute: "5 * time.Minute"},
		"lettuce":      {6 * time.Second: "Duration.ofSeconds(30)", 100 * time.Millisecond: "Duration.ofMillis(500)"},
		"ioredis":      {6 * time.Second: "slotsRefreshInterval: 30000"},
		"SE.Redis":     {time.Minute: "configCheckSeconds=300", 100 * time.Millisecond: "configCheckSeconds=1"},
		"redisson 3.1": {5 * time.Second: "setScanInterval(25000)"},
	} {
		for period, setting := range want {
			policy, ok := PolicyOf(library)
			c := Cluster{
				RefreshLoad: RefreshLoad{Command: Slots, Clients: 10, Period: period, PerNode: 1, Counted: true},
				Size:        Size{Nodes: 3, Masters: 3, Ranges: 3, Entries: 3},
				PerCall:     time.Millisecond, Policy: policy,
			}
			options := c.Options(nil)
			i := slices.IndexFunc(options, func(o Option) bool { return o.ID == "longer-period" })
			if !ok || i < 0 || !strings.Contains(options[i].How, setting) {
				t.Errorf("%s every %v: %+v, want %s", library, period, options[max(i, 0)], setting)
			}
		}
	}
	for _, p := range policies {
		if text := p.LongerFor(time.Minute); strings.ContainsAny(text, "{}") {
			t.Errorf("%s: %s", p.Library, text)
		}
	}
}
