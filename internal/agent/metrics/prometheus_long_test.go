package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/notify"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/house/prometheustest"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/live"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

const dashboardFile = "../../../packaging/grafana/slowpath.json"

// TestPrometheus: a real one scrapes the metrics of a real watch of a server with slow and failing calls, as text and
// as native histograms. Each expression of the dashboard gives data, exemplars arrive, and the alerts fire.
func TestPrometheus(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisCLI, prometheustest.Need)
	agent := startAgent(t)
	classic := startPrometheus(t, agent, "exemplar-storage")
	native := startPrometheus(t, agent, "native-histograms,exemplar-storage")
	awaitDashboard(t, classic)
	for _, alert := range []string{
		"SlowpathSlowCalls", "SlowpathFailingCalls", "SlowpathOverBudget", "SlowpathIncident", "SlowpathCannotSend",
	} {
		await.UntilOr(t, func() bool {
			return query(t, classic, `ALERTS{alertname="`+alert+`", alertstate="firing"}`) != ""
		}, func() string { return alert + " fires: " + query(t, classic, "ALERTS") })
	}
	if got := query(t, classic, `ALERTS{alertname="SlowpathBlind"}`); got != "" {
		t.Errorf("the agent sees all, and SlowpathBlind: %s", got)
	}
	var exemplars struct {
		Data []struct {
			Exemplars []struct{ Labels map[string]string }
		}
	}
	await.Until(t, "an exemplar", func() bool {
		get(t, classic+"/api/v1/query_exemplars?start=0&end=9999999999&query="+
			url.QueryEscape(`slowpath_call_duration_seconds_bucket{whose="users"}`), &exemplars)
		return len(exemplars.Data) > 0 && len(exemplars.Data[0].Exemplars) > 0
	})
	t.Logf("an exemplar: %v", exemplars.Data[0].Exemplars[0].Labels)
	const quantile = `histogram_quantile(0.99, sum(rate(slowpath_call_duration_seconds{whose="users"}[1m])))`
	await.Until(t, "a native histogram", func() bool { return query(t, native, quantile) != "" })
	t.Logf("p99 of users' calls by native histograms: %s", query(t, native, quantile))
	t.Logf("alerts: %s", query(t, classic, `ALERTS{alertstate="firing"}`))
}

// awaitDashboard runs all expressions of the dashboard until each has data.
func awaitDashboard(t *testing.T, prometheus string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	b, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*", "$node", ".*")
	n := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			n++
			expr := variables.Replace(target.Expr)
			await.UntilOr(t, func() bool {
				got := query(t, prometheus, expr)
				return got != "" && !strings.Contains(got, "NaN")
			}, func() string {
				return p.Title + " has data: " + expr + "\n" +
					query(t, prometheus, "up or slowpath_calls_total or slowpath_source_up")
			})
		}
	}
	if n < 20 {
		t.Errorf("%d expressions in the dashboard", n)
	}
}

// startAgent watches a server whose calls are slow and fail, and serves what it saw. It gives the address.
func startAgent(t *testing.T) string {
	t.Helper()
	server := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	call(t, server.Addr, "0.001", "GET", "key")
	call(t, server.Addr, "0.1", "EVAL", "for i=1,2000000 do end", "0") // others wait for it, some 20 ms
	call(t, server.Addr, "0.05", "INCRBY", "key", "x")                 // fails
	to, err := (&target.Options{}).Targets([]string{server.Addr}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	view := live.New(live.Options{Slow: 5 * time.Millisecond})
	m := metrics.New(metrics.Options{
		View: view, Version: "test",
		Health: func() metrics.Health {
			return metrics.Health{
				Watching: true, OverBudget: true, CPUBudgetCores: 0.01, MemoryBudgetBytes: 64 << 20, HookCores: 0.01,
				CPUCores: 0.02, MemoryBytes: 60 << 20,
			}
		},
		Deliveries: failing(t),
	})
	m.Incident(incidents.Incident{ID: "1", State: incidents.StateWatching})
	m.Incident(incidents.Incident{
		ID: "2", State: incidents.StateJudged, End: time.Now(), Cause: "slow-command", Verdict: "findings",
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- source.Run(ctx, source.Options{Targets: to, Slow: "5ms", Version: "test", ProbeRate: 10}, view)
	}()
	go m.Run(ctx)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, b := range view.BlindSpots() {
			if t.Failed() {
				t.Logf("blind: %s: %s", b.What, b.Why)
			}
		}
	})
	serve := httptest.NewServer(m)
	t.Cleanup(serve.Close)
	return strings.TrimPrefix(serve.URL, "http://")
}

// failing is a notifier whose receiver refuses all, as the deliveries of an agent: one more each second.
func failing(t *testing.T) func() []metrics.Delivery {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	to, err := notify.Parse(server.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	n := notify.New(notify.Options{Receivers: []notify.Receiver{to}, PerHour: 10_000})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { n.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	var i atomic.Int64
	return func() []metrics.Delivery {
		n.Send(notify.Message{ID: fmt.Sprint(i.Add(1)), Verdict: "findings"})
		s := n.Stats()
		return []metrics.Delivery{{Channel: "notify", Sent: s.Sent, Failed: s.Failed, Dropped: s.Dropped}}
	}
}
