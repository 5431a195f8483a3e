package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/prometheus/procfs"
	"go.yaml.in/yaml/v3"

	"slowpath/internal/manyhosts"
)

// Files of the repository, which scripts/fleet-scale is in.
const (
	engineFile  = "internal/manyhosts/_engine/engine.py"
	gatewayFile = "packaging/helm/slowpath/files/gateway.yaml"
	valuesFile  = "packaging/helm/slowpath/values.yaml"
)

// tenant is that of the gateway's token.
const tenant = "fleet-scale"

// process is a program that runs until it is killed, and may then be started again.
type process struct {
	command []string
	env     []string
	log     string // a file
	ready   string // is in the log once it is
	cmd     *exec.Cmd
	past    time.Duration // CPU time of those before
	memory  uint64        // most bytes that were resident
}

func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	return eventually(ctx, time.Minute, "the start of "+filepath.Base(p.command[0]), func() (bool, error) {
		text, err := os.ReadFile(p.log)
		return bytes.Contains(text, []byte(p.ready)), err
	})
}

// kill is kill -9.
func (p *process) kill() {
	p.past, p.memory = p.used()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// used is the CPU time and the most memory so far.
func (p *process) used() (cpu time.Duration, memory uint64) {
	cpu, memory = p.past, p.memory
	one, err := procfs.NewProc(p.cmd.Process.Pid)
	if err != nil {
		return cpu, memory
	}
	if stat, err := one.Stat(); err == nil {
		cpu += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	if status, err := one.NewStatus(); err == nil {
		memory = max(memory, status.VmHWM)
	}
	return cpu, memory
}

// eventually waits until something is so.
func eventually(ctx context.Context, most time.Duration, what string, is func() (bool, error)) error {
	for end := time.Now().Add(most); ; {
		ok, err := is()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s did not happen within %s: %w", what, most, errors.Join(err, context.DeadlineExceeded))
		}
		if until(ctx, time.Now().Add(200*time.Millisecond)) != nil {
			return fmt.Errorf("waiting for %s: %w; -limit is how long it may take", what, errors.Join(err, ctx.Err()))
		}
	}
}

// stack is a Collector with the gateway's configuration, before ClickHouse's engine with slowpath's schema.
type stack struct {
	dir       string
	engine    process
	collector process
	source    string // of slowpath fleet
	otlp      string // address
	metrics   string // URL of the Collector's own
	queue     int64  // bytes of each signal
	keep      bool   // what it wrote, when it stops
	*manyhosts.ClickHouse
}

func startStack(ctx context.Context, collector, python string, queue int) (s *stack, err error) {
	s = &stack{}
	if s.dir, err = os.MkdirTemp("", "fleet-scale"); err != nil {
		return nil, err
	}
	s.engine = process{
		command: []string{python, engineFile, filepath.Join(s.dir, "db")}, log: filepath.Join(s.dir, "engine.log"),
		ready: "listening on ",
	}
	if err := s.engine.start(ctx); err != nil {
		return s, err
	}
	log, err := os.ReadFile(s.engine.log)
	if err != nil {
		return s, err
	}
	_, port, _ := strings.Cut(strings.TrimSpace(string(log)), s.engine.ready)
	s.engine.command = append(s.engine.command, port) // again there
	s.source = "clickhouse+http://127.0.0.1:" + port + "/slowpath"
	if err := manyhosts.ApplySchema(ctx, s.source, manyhosts.Login{}, "", func(string) {}); err != nil {
		return s, err
	}
	if s.ClickHouse, err = manyhosts.OpenClickHouse(ctx, s.source, manyhosts.Login{}); err != nil {
		return s, err
	}
	configuration, err := s.configuration("http://127.0.0.1:"+port, queue)
	if err != nil {
		return s, err
	}
	s.collector = process{
		command: append([]string{collector}, configuration...), log: filepath.Join(s.dir, "collector.log"),
		env:   []string{"CLICKHOUSE_USER=default", "CLICKHOUSE_PASSWORD=", "GOMEMLIMIT=512MiB"}, // as in the chart
		ready: "Everything is ready",
	}
	return s, s.collector.start(ctx)
}

// configuration writes that of the chart's gateway, and what is different here: addresses on loopback, files in a
// directory of its own, no compression, which the engine's HTTP side does not know, and the memory of the chart's
// container in place of the machine's.
func (s *stack) configuration(clickhouse string, queue int) (options []string, err error) {
	text, err := os.ReadFile(valuesFile)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	gateway := values["gateway"].(map[string]any)
	gateway["tenant"], gateway["k8sattributes"] = tenant, false
	gateway["clickhouse"] = map[string]any{"endpoint": clickhouse, "database": "slowpath"}
	if queue > 0 {
		gateway["queueBytes"] = queue
	}
	size, _ := gateway["queueBytes"].(int)
	s.queue = int64(size)
	if text, err = os.ReadFile(gatewayFile); err != nil {
		return nil, err
	}
	t, err := template.New("gateway").Funcs(template.FuncMap{ // of Helm, as far as the file uses them
		"toJson": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"quote":  func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"int64":  func(v int) int64 { return int64(v) },
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var shipped bytes.Buffer
	if err := t.Execute(&shipped, map[string]any{"Values": values}); err != nil {
		return nil, err
	}
	free, err := freeAddresses(4)
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(free[3])
	s.otlp, s.metrics = free[0], "http://"+free[3]+"/metrics"
	here := fmt.Sprintf(`
extensions:
  health_check: {endpoint: %q}
  bearertokenauth: {filename: %[5]s/token}
  file_storage/queue: {directory: %[5]s/queue, create_directory: true, compaction: {directory: %[5]s/queue}}
receivers: {otlp: {protocols: {grpc: {endpoint: %[2]q}, http: {endpoint: %[3]q}}}}
processors: {memory_limiter: {limit_mib: 768, spike_limit_mib: 205}}
exporters: {clickhouse: {compress: none}}
service:
  telemetry:
    metrics: {readers: [{pull: {exporter: {prometheus: {host: %[4]q, port: %[6]s, without_type_suffix: true}}}}]}
`, free[2], free[0], free[1], host, s.dir, port)
	for name, content := range map[string]string{
		"gateway.yaml": shipped.String(), "here.yaml": here, "token": token,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--config", s.dir + "/gateway.yaml", "--config", s.dir + "/here.yaml"}, nil
}

// freeAddresses are addresses on loopback where nobody listens.
func freeAddresses(n int) (out []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

var queueSize = regexp.MustCompile(`(?m)^otelcol_exporter_queue_size\{.*?data_type="(\w+)".*?\} (\S+)$`)

// queued is what waits in the Collector's queues, in bytes by signal.
func (s *stack) queued(ctx context.Context) (out map[string]int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(response.Body))
	out = map[string]int64{}
	for _, m := range queueSize.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.ParseFloat(m[2], 64)
		out[m[1]] += int64(n)
	}
	return out, err
}

// stop ends all of it, and removes what it wrote, unless that is kept.
func (s *stack) stop() error {
	for _, p := range []*process{&s.collector, &s.engine} {
		if p.cmd != nil {
			p.kill()
		}
	}
	if s.ClickHouse != nil {
		s.Close()
	}
	if s.keep {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// sizeOf is the bytes of the files in a directory.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
