package metrics_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
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
	start(t, exec.Command("redis-cli", args...))
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
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+dir,
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
	await.Until(t, "Prometheus is ready", func() bool {
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
