//go:build linux

// Package prometheustest starts a real Prometheus for tests.
package prometheustest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// Need is Prometheus, with promtool.
var Need = needs.Command("prometheus", "prometheus")

// Run runs a program until the test ends, or its process is killed. The kernel kills it with the thread that started
// it, so that this thread waits for it: threads of a watch end before the process does.
func Run(t testing.TB, cmd *exec.Cmd) {
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

// Start runs a Prometheus until the test ends, with files of its directory, of which prometheus.yml is its
// configuration. Blocks of data may be there before. It gives its address.
func Start(t testing.TB, dir string, files map[string]string, flags ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("prometheus", append(flags, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+dir, "--web.listen-address="+address, "--log.level=warn")...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	t.Cleanup(func() { // after its end
		if t.Failed() {
			t.Logf("Prometheus said: %.3000s", said.String())
		}
	})
	Run(t, cmd)
	await.Until(t, "Prometheus is ready", func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return address
}
