package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/notify"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/live"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

const (
	rulesFile     = "../../../packaging/prometheus/slowpath.rules.yml"
	rulesTest     = "../../../packaging/prometheus/slowpath.rules_test.yml"
	dashboardFile = "../../../packaging/grafana/slowpath.json"
)

// await polls until ok, for at most two minutes.
func await(t testing.TB, what func() string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within two minutes: " + what())
		}
	}
}

// TestRules: promtool takes the alert rules that ship, and each fires when it should and not else.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs the Debian package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", rulesTest}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestPrometheus: a real one scrapes the metrics of a real watch of a server with slow and failing calls, as text and
// as native histograms. Each expression of the dashboard gives data, exemplars arrive, and the alerts fire.
func TestPrometheus(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	agent := startAgent(t)
	classic := startPrometheus(t, agent, "exemplar-storage")
	native := startPrometheus(t, agent, "native-histograms,exemplar-storage")
	awaitDashboard(t, classic)
	for _, alert := range []string{
		"SlowpathSlowCalls", "SlowpathFailingCalls", "SlowpathOverBudget", "SlowpathIncident", "SlowpathCannotSend",
	} {
		await(t, func() string { return alert + " fires: " + query(t, classic, "ALERTS") }, func() bool {
			return query(t, classic, `ALERTS{alertname="`+alert+`", alertstate="firing"}`) != ""
		})
	}
	if got := query(t, classic, `ALERTS{alertname="SlowpathBlind"}`); got != "" {
		t.Errorf("the agent sees all, and SlowpathBlind: %s", got)
	}
	var exemplars struct {
		Data []struct {
			Exemplars []struct{ Labels map[string]string }
		}
	}
	await(t, func() string { return "an exemplar" }, func() bool {
		get(t, classic+"/api/v1/query_exemplars?start=0&end=9999999999&query="+
			url.QueryEscape(`slowpath_call_duration_seconds_bucket{whose="users"}`), &exemplars)
		return len(exemplars.Data) > 0 && len(exemplars.Data[0].Exemplars) > 0
	})
	t.Logf("an exemplar: %v", exemplars.Data[0].Exemplars[0].Labels)
	const quantile = `histogram_quantile(0.99, sum(rate(slowpath_call_duration_seconds{whose="users"}[1m])))`
	await(t, func() string { return "a native histogram" }, func() bool { return query(t, native, quantile) != "" })
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
			await(t, func() string {
				return p.Title + " has data: " + expr + "\n" +
					query(t, prometheus, "up or slowpath_calls_total or slowpath_source_up")
			}, func() bool {
				got := query(t, prometheus, expr)
				return got != "" && !strings.Contains(got, "NaN")
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

// call has another process send a command again and again until the test ends: the tap knows the calls of this process
// as slowpath's own.
func call(t *testing.T, address, pause string, command ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("needs redis-cli")
	}
	cmd := exec.Command(program, append([]string{"-h", host, "-p", port, "-r", "1000000", "-i", pause}, command...)...)
	start(t, cmd)
}

// start runs a program until the test ends, or its process is killed. The kernel kills it with the thread that started
// it, so that this thread waits for it: threads of a watch end before the process does.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}

// startPrometheus runs one that scrapes an agent each second, with the rules that ship, without their waits.
func startPrometheus(t *testing.T, agent, features string) (address string) {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs the Debian package prometheus")
	}
	dir := t.TempDir()
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	_ = l.Close()
	for name, text := range map[string]string{
		"rules.yml": regexp.MustCompile(`for: \d+m`).ReplaceAllString(string(rules), "for: 1s"),
		"prometheus.yml": "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n" +
			"scrape_configs: [{job_name: slowpath, static_configs: [{targets: ['" + agent + "']}]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+dir,
		"--web.listen-address="+listen, "--log.level=warn",
		"--enable-feature="+features)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	t.Cleanup(func() { // after its end
		if t.Failed() {
			t.Logf("Prometheus said: %.3000s", said.String())
		}
	})
	start(t, cmd)
	address = "http://" + listen
	await(t, func() string { return "Prometheus is ready" }, func() bool {
		resp, err := http.Get(address + "/-/ready")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return address
}

// query is the result of an expression now, as JSON; empty where there is none.
func query(t *testing.T, prometheus, expr string) string {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	get(t, prometheus+"/api/v1/query?query="+url.QueryEscape(expr), &answer)
	if answer.Status != "success" {
		t.Fatalf("%s: %s", expr, answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return ""
	}
	b, err := json.Marshal(answer.Data.Result)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func get(t *testing.T, address string, into any) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
}
