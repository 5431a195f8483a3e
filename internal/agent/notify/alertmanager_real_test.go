package notify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/notify"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// startAlertmanager runs the real one until the test ends. It sends what it is told to a webhook.
func startAlertmanager(t *testing.T, webhook string) (address string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	text := fmt.Sprintf("route: {receiver: test, group_wait: 1s, group_interval: 1s, group_by: [incident]}\n"+
		"receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]\n", webhook)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	cmd := exec.Command("prometheus-alertmanager", "--config.file="+config, "--storage.path="+dir,
		"--web.listen-address="+address, "--cluster.listen-address=")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	await.Until(t, "Alertmanager is ready", func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return address
}

// TestAlertmanager: a real one takes the alert of an incident, tells its own receiver, and ends the alert when the
// cause turns out to be another.
func TestAlertmanager(t *testing.T) {
	needs.Real(t, needs.Command("prometheus-alertmanager", "prometheus-alertmanager"))
	s := &sink{}
	server := httptest.NewServer(s)
	defer server.Close()
	address := startAlertmanager(t, server.URL)
	n, log := started(t, notify.Options{}, "alertmanager+http://"+address)
	m := judged(t, "20261124T031207Z-1")
	end := m.End
	m.End, m.Cause = time.Time{}, "slow-command" // a first verdict, while it goes on
	n.Send(m)
	await.Until(t, "the first verdict", func() bool {
		return strings.Contains(strings.Join(s.got(), ""), "slow-command")
	})
	m.End, m.Cause = end, "server-cfs-throttled"
	n.Send(m)
	await.Until(t, "the last verdict", func() bool {
		return strings.Contains(strings.Join(s.got(), ""), "server-cfs-throttled") && n.Stats().Sent == 2
	})
	var alerts []struct {
		Labels, Annotations map[string]string
		GeneratorURL        string
		Status              struct{ State string }
	}
	await.Until(t, "one active alert", func() bool {
		resp, err := http.Get("http://" + address + "/api/v2/alerts")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		alerts = nil
		return err == nil && json.Unmarshal(b, &alerts) == nil && len(alerts) == 1
	})
	a := alerts[0]
	if a.Labels["cause"] != "server-cfs-throttled" || a.Status.State != "active" || a.GeneratorURL != m.Link ||
		!strings.Contains(a.Annotations["summary"], "CPU quota") || a.Annotations["fix"] == "" {
		t.Errorf("%+v", a)
	}
	if log.text() != "" {
		t.Error(log.text())
	}
	t.Logf("Alertmanager has: %v\n%v", a.Labels, a.Annotations)
}
