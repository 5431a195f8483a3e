package metrics_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"slowpath/internal/house/prometheustest"
)

// call has another process send a command again and again until the test ends: the tap knows the calls of this process
// as slowpath's own.
func call(t *testing.T, address, pause string, command ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-h", host, "-p", port, "-r", "1000000", "-i", pause}, command...)
	prometheustest.Run(t, exec.Command("redis-cli", args...))
}

// startPrometheus runs one that scrapes an agent each second, with the rules that ship, without their waits.
func startPrometheus(t *testing.T, agent, features string) (address string) {
	t.Helper()
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + prometheustest.Start(t, t.TempDir(), map[string]string{
		"rules.yml": regexp.MustCompile(`for: \d+m`).ReplaceAllString(string(rules), "for: 1s"),
		"prometheus.yml": "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n" +
			"scrape_configs: [{job_name: slowpath, static_configs: [{targets: ['" + agent + "']}]}]\n",
	}, "--enable-feature="+features)
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
