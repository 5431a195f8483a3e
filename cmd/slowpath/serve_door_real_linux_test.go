package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/door"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/source/hostfs"
)

// someone is a user who owns the directory of an agent, and none of root's files.
const someone = 65533

// agentOf starts an agent of root whose directory belongs to someone, and gives the address of its page.
func agentOf(t *testing.T, data, program string, args ...string) (c *exec.Cmd, log *clitest.Output, page string) {
	t.Helper()
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, someone, someone); err != nil {
		t.Fatal(err)
	}
	log = &clitest.Output{}
	c = exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...)...)
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState != nil { // the test has waited for it
			return
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	})
	until(t, log, "watching ")
	return c, log, strings.TrimSuffix(pageOf.FindStringSubmatch(log.String())[1], "/")
}

// doorOf is the process of an agent's door.
func doorOf(t *testing.T, agent int) (pid int) {
	t.Helper()
	await.Until(t, "the agent has its door", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		ofAgent := fmt.Appendf(nil, "PPid:\t%d\n", agent)
		for _, name := range all {
			line, _ := os.ReadFile(name)
			status, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
			if bytes.Contains(line, []byte(door.Command)) && bytes.Contains(status, ofAgent) {
				pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
			}
		}
		return pid != 0
	})
	return pid
}

// residentOf is the resident memory of a process in bytes.
func residentOf(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kB, err := strconv.ParseInt(strings.TrimSuffix(hostfs.StatusField(status, "VmRSS"), " kB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// TestDoorOfServe: what other hosts reach is a process without any capability, which cannot gain one, holds none of the
// agent's files, and ends with it. An agent whose door has ended does so, too.
func TestDoorOfServe(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	dir := sharedDir(t)
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	program := built(t, dir)
	c, _, page := agentOf(t, filepath.Join(dir, "data"), program, r.Addr)
	pid := doorOf(t, c.Process.Pid)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	const none = "0000000000000000"
	for _, name := range threads {
		status, err := os.ReadFile(name)
		if err == nil && !regexp.MustCompile(rights(someone, none)+`Seccomp:\t2\n`).Match(status) {
			t.Errorf("%s: %s", name, status)
		}
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		to, _ := os.Readlink(fd)
		if strings.HasPrefix(to, dir) || strings.Contains(to, "bpf") {
			t.Errorf("the door has %s open", to)
		}
	}
	if code, body := get(t, page+"/healthz"); code != 200 || !strings.Contains(body, r.Addr) {
		t.Errorf("through the door: %d %s", code, body)
	}
	await.Until(t, "health counts the memory of both processes", func() bool {
		await.Pass(time.Second) // to ask takes memory, too
		var health struct {
			Cost struct {
				RSSBytes int64 `json:"rss_bytes"`
			}
		}
		_, body := get(t, page+"/healthz")
		if err := json.Unmarshal([]byte(body), &health); err != nil {
			t.Fatal(err)
		}
		const moves = 3 << 20 // what the agent takes changes from measurement to measurement
		beside, own := health.Cost.RSSBytes-residentOf(t, c.Process.Pid), residentOf(t, pid)
		return own > 2*moves && max(beside-own, own-beside) < moves
	})
	_ = c.Process.Kill()
	_ = c.Wait()
	await.Until(t, "the door ends with its agent", func() bool { return syscall.Kill(pid, 0) != nil })
	c, log, _ := agentOf(t, filepath.Join(dir, "second"), program, r.Addr)
	if err := syscall.Kill(doorOf(t, c.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || !strings.Contains(log.String(), "the process of the page has ended") {
		t.Errorf("an agent without a door: %v: %s", err, log.String())
	}
}

// TestLinkedIncidentOfServe is the attack of who owns the directory of an agent of root: an incident that is a link to
// a directory of root, by way of /proc/PID/root, whose files the agent could read by its capabilities. Nothing of them
// is sent, and nothing is written there. What the agent keeps is for its user alone.
func TestLinkedIncidentOfServe(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	dir, secrets := sharedDir(t), t.TempDir()
	data := filepath.Join(dir, "data")
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	_, log, page := agentOf(t, data, built(t, dir), "--after", "1s", r.Addr)
	await.Until(t, "an incident begins", func() bool {
		reply, err := http.Post(page+"/api/v1/incidents", "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		defer reply.Body.Close()
		return reply.StatusCode == http.StatusAccepted
	})
	until(t, log, "[^t] verdict after")
	all, err := filepath.Glob(filepath.Join(data, "incidents", "*-1"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	id := filepath.Base(all[0])
	ends := []string{"", "/recording", "/report"}
	for _, end := range ends {
		if code, body := get(t, page+"/api/v1/incidents/"+id+end); code != 200 || body == "" {
			t.Errorf("before the attack, %s: %d", end, code)
		}
	}
	if err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := map[bool]os.FileMode{false: 0o600, true: 0o700}[e.IsDir()]
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v", path, info.Mode(), want)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	const secret = "root:$6$hash"
	names := []string{"recording.slowpath", "report.html", "diagnosis.json", "incident.json"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{
		fmt.Sprintf("/proc/%d/root%s", os.Getpid(), secrets), secrets, "/proc/self/root" + secrets,
	} {
		if err := os.RemoveAll(all[0]); err != nil {
			t.Fatal(err)
		}
		theirs := exec.Command("ln", "-s", to, all[0])
		theirs.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
		if out, err := theirs.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, end := range ends {
			code, body := get(t, page+"/api/v1/incidents/"+id+end)
			if code == 200 || strings.Contains(body, "root:") || strings.Contains(body, dir) {
				t.Errorf("a link to %s, %s: %d %.200s", to, end, code, body)
			}
		}
	}
	for _, name := range names {
		if body, err := os.ReadFile(filepath.Join(secrets, name)); err != nil || string(body) != secret {
			t.Errorf("%s was changed: %q, %v", name, body, err)
		}
	}
}

// TestSecretsOfServe: the password of a server and the token of the page are in no file below --data, in no line of the
// log, in no reply, and in no command line or environment of any process of the agent.
func TestSecretsOfServe(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	const password, token = "hunter2-hunter2-hunter2", "token-of-the-page-0123456789"
	dir := sharedDir(t)
	data := filepath.Join(dir, "data")
	for name, text := range map[string]string{"password": password, "token": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{Password: password})
	c, log, page := agentOf(t, data, built(t, dir), "--password-file", filepath.Join(dir, "password"), "--token-file",
		filepath.Join(dir, "token"), "--after", "1s", r.Addr)
	seen := map[string]string{}
	ask := func(method, path, with string) int {
		request, err := http.NewRequest(method, page+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+with)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		seen[method+" "+path+" with "+with[:3]] = fmt.Sprint(reply.Header, string(body))
		return reply.StatusCode
	}
	await.Until(t, "an incident begins", func() bool { return ask("POST", "/api/v1/incidents", token) == 202 })
	until(t, log, "[^t] verdict after")
	for _, path := range []string{
		"/healthz", "/", "/incidents", "/topology", "/metrics", "/api/v1/overview", "/api/v1/topology",
		"/api/v1/incidents",
	} {
		if code := ask("GET", path, token); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
		ask("GET", path, token+"x")
	}
	_ = c.Process.Signal(syscall.SIGHUP)
	until(t, log, "the configuration was read again")
	seen["the log"] = log.String()
	for _, pid := range []int{c.Process.Pid, doorOf(t, c.Process.Pid)} {
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				t.Fatal(err)
			}
			seen[fmt.Sprintf("%s of %d", name, pid)] = string(text)
		}
	}
	if err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		seen[path] = string(text)
		return err
	}); err != nil {
		t.Error(err)
	}
	for where, text := range seen {
		if strings.Contains(text, password) || strings.Contains(text, token) {
			t.Errorf("%s has a secret: %.300s", where, text)
		}
	}
}

// TestDirectoriesOfOthers: serve does not begin in a directory that others can write, or put another one in the place
// of. The error ends in the fix.
func TestDirectoriesOfOthers(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := sharedDir(t)
	program := built(t, dir)
	for name, c := range map[string]struct {
		parent, own os.FileMode
		want        string
	}{
		"writable":        {0o755, 0o777, "other users can write there; chmod go-w "},
		"of a group":      {0o755, 0o770, "other users can write there; chmod go-w "},
		"writable parent": {0o777, 0o700, "put another directory in its place; chmod go-w "},
	} {
		data := filepath.Join(dir, name, "data")
		for _, err := range []error{
			os.MkdirAll(data, 0o700), os.Chmod(data, c.own), os.Chmod(filepath.Dir(data), c.parent),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		c2 := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", data, "127.0.0.1:1")
		out, err := c2.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte(c.want)) || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// sharedDir is a directory that other users may enter, until the end of a test.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "slowpath-serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
