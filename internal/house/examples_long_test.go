package house

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// TestExamples runs every sh block of README.md and docs/tasks.md, in order and in one directory, against servers of
// its own. What cannot run in a test is in text blocks.
func TestExamples(t *testing.T) {
	needs.Long(t, needs.RedisServer)
	s := newStage(t)
	for _, file := range []string{"README.md", "docs/tasks.md"} {
		blocks := fenced(t, file, "sh")
		if len(blocks) < 5 {
			t.Fatalf("%s has %d sh blocks; the fences have changed", file, len(blocks))
		}
		for i, b := range blocks {
			t.Run(fmt.Sprintf("%s block %d", filepath.Base(file), i+1), func(t *testing.T) { s.run(t, b) })
		}
	}
	// What the examples left behind is what the other documents speak of.
	t.Run("queries of recording.md", func(t *testing.T) { checkQueries(t, filepath.Join(s.dir, "night.slowpath")) })
	t.Run("samples of recording.md", func(t *testing.T) { checkSamples(t, filepath.Join(s.dir, "night.slowpath")) })
	t.Run("fields of json.md", func(t *testing.T) { checkProbeFields(t, filepath.Join(s.dir, "probe.ndjson")) })
}

// checkQueries runs the queries of docs/recording.md on a recording. A quiet server gives no rows to the one about slow
// calls.
func checkQueries(t *testing.T, recording string) {
	db := open(t, recording)
	queries := fenced(t, "docs/recording.md", "sql")
	if len(queries) < 3 {
		t.Fatalf("%d queries; the fences have changed", len(queries))
	}
	for _, q := range queries {
		if rows := query(t, db, q); len(rows) == 0 && !strings.Contains(q, ">= 5e6") {
			t.Errorf("no rows: %s", q)
		}
	}
}

var (
	ofAThread = regexp.MustCompile(`^thread\..*\.(\w+)$`)
	ofACPU    = regexp.MustCompile(`^cpu\.\d+\.`)
	ofAName   = regexp.MustCompile(`^(psi|memory\.events)\.\w+`)
	ofTheNet  = regexp.MustCompile(`^net\.[A-Z]\w+$`)
)

// checkSamples wants the name of every sample of the host source documented.
func checkSamples(t *testing.T, recording string) {
	text := read(t, "docs/recording.md")
	for _, row := range query(t, open(t, recording), "SELECT DISTINCT name FROM sample WHERE source = 'host' OR name "+
		"LIKE 'self.%'") {
		name := ofAThread.ReplaceAllString(row[0], "thread.NAME.$1")
		name = ofACPU.ReplaceAllString(name, "cpu.N.")
		name = ofAName.ReplaceAllString(name, "$1.NAME")
		name = ofTheNet.ReplaceAllString(name, "net.NAME")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/recording.md does not name the sample %s", name)
		}
	}
}

// checkProbeFields wants every field of slowpath.probe/v1 documented.
func checkProbeFields(t *testing.T, file string) {
	section := sectionOf(read(t, "docs/json.md"), "slowpath.probe/v1")
	first, _, _ := strings.Cut(read(t, file), "\n")
	var doc map[string]any
	if err := json.Unmarshal([]byte(first), &doc); err != nil {
		t.Fatalf("%v: %s", err, first)
	}
	fields := slices.Collect(maps.Keys(doc))
	phases, _ := doc["phases"].(map[string]any)
	for name, p := range phases {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/json.md does not name the phase %s", name)
		}
		for field := range p.(map[string]any) {
			fields = append(fields, "phases.*."+field)
		}
	}
	for _, f := range fields {
		if !strings.Contains(section, "| `"+f+"` |") {
			t.Errorf("docs/json.md, slowpath.probe/v1: no row for `%s`", f)
		}
	}
}

// fenced gives the fenced blocks of a language in a Markdown file.
func fenced(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// stage is where examples run: a directory, the program in PATH, and servers in place of the addresses in the examples.
type stage struct {
	dir       string
	codes     string // file of "EXIT-CODE ARGUMENTS" lines, one per call of the program
	addresses *strings.Replacer
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{dir: t.TempDir()}
	s.codes = filepath.Join(s.dir, ".codes")
	s.program(t)
	f := stageFleet(t)
	bin := server(t, servers.Redis7015)
	plain := start(t, f, bin, fleet.Spec{UnixSocket: true})
	tls := start(t, f, bin, fleet.Spec{TLS: true, Password: "secret", ACL: []string{"user ops on >secret ~* &* +@all"}})
	cluster, err := f.StartCluster(t.Context(), bin, 3, 0, fleet.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range cluster.Nodes {
		stopAtEnd(t, n)
	}
	ca, err := os.ReadFile(tls.CACert)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "ca.crt"), ca, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.addresses = strings.NewReplacer(
		"127.0.0.1:6378", forward(t, plain.Addr),
		"127.0.0.1:6379", plain.Addr,
		"127.0.0.1:6380", tls.Addr,
		"127.0.0.1:7001", cluster.Nodes[0].Addr,
		"/run/redis/redis.sock", plain.Socket,
	)
	return s
}

// program builds slowpath and puts a wrapper into PATH that has watches of a server end three seconds after they began,
// and notes exit codes.
func (s *stage) program(t *testing.T) {
	t.Helper()
	real := filepath.Join(s.dir, ".bin", "real", "slowpath")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Dir(real)+"/",
		"./cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("building slowpath: %v\n%s", err, out)
	}
	wrapper := fmt.Sprintf(`#!/bin/bash
limit=()
case "$1 $*" in
"lab "*) ;;
*127.0.0.1:* | *.sock*) limit=(--for 3s) ;; # the last one holds
esac
%[1]q "$@" "${limit[@]}"
code=$?
echo "$code $*" >>%[2]q
exit $code
`, real, s.codes)
	if err := os.WriteFile(filepath.Join(s.dir, ".bin", "slowpath"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
}

var oneCall = regexp.MustCompile(`\bslowpath (doctor|top|probe|trace|record|report|bench|topology|lab)\b`)

// run executes a block as one script and judges the exit code of each call in it.
func (s *stage) run(t *testing.T, block string) {
	if err := os.WriteFile(s.codes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-uc", s.addresses.Replace(block))
	c.Dir = s.dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(s.dir, ".bin")+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+s.dir,
		"LC_ALL=C.UTF-8")
	out, err := c.CombinedOutput()
	t.Logf("%s\n%s", block, out)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 4)) {
		t.Errorf("the block ended with %v", err)
	}
	lines, err := os.ReadFile(s.codes)
	if err != nil {
		t.Fatal(err)
	}
	calls := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if want := len(oneCall.FindAllString(block, -1)); len(calls) != want {
		t.Errorf("the block ran slowpath %d times, and has %d calls of it", len(calls), want)
	}
	for _, call := range calls {
		code, args, _ := strings.Cut(call, " ")
		if !expected(code, args) {
			t.Errorf("slowpath %s: exit code %s", args, code)
		}
	}
}

// expected: 0, and where a verdict is given 1; a scenario or a trace that this machine cannot make is 4.
func expected(code, args string) bool {
	switch {
	case code == "0":
		return true
	case strings.HasPrefix(args, "doctor "), strings.HasPrefix(args, "top "), strings.HasPrefix(args, "topology "):
		return code == "1"
	case strings.HasPrefix(args, "trace "):
		return code == "4" // without root or BPF
	case strings.HasPrefix(args, "lab run "):
		return code == "1" || code == "4"
	}
	return false
}

// stageFleet has a registry of its own: a lab that the user has up is not touched.
func stageFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	r, err := fleet.OpenRegistry(filepath.Join(t.TempDir(), "lab"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// server takes a server from the user's cache, obtaining it the first time.
func server(t *testing.T, name servers.Name) servers.Binary {
	t.Helper()
	c, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Get(t.Context(), name, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start(t *testing.T, f *fleet.Fleet, bin servers.Binary, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	i, err := f.Start(t.Context(), bin, spec)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, i)
	return i
}

func stopAtEnd(t *testing.T, i *fleet.Instance) {
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// forward is a hop in front of a server: it passes bytes on, both ways.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer front.Close()
				back, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer back.Close()
				go func() { _, _ = io.Copy(back, front); back.Close() }()
				_, _ = io.Copy(front, back)
			}()
		}
	}()
	return l.Addr().String()
}
