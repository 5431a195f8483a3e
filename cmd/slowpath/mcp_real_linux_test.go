package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"slowpath/internal/assistant"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// TestAssistant: an assistant that starts slowpath mcp beside a server with KEYS in its traffic gets the cause, with
// evidence to cite and a fix. The name that a client gave itself is untrusted text.
func TestAssistant(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"enable-debug-command local"}})
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	fill := exec.Command("redis-cli", "-h", host, "-p", port, "DEBUG", "POPULATE", "1000000")
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, of := range []traffic.Spec{
		{Name: "report", Rate: 3, Command: traffic.Always("KEYS", "nothing*")},
		{Name: "shop", Rate: 50, Command: traffic.Always("GET", "key:1")},
	} {
		of.Addr, of.Conns = r.Addr, 1
		t.Cleanup(traffic.Start(t.Context(), of).Stop)
	}
	program := filepath.Join(builtProgram(t), "slowpath")
	c := session(t, &mcp.CommandTransport{Command: exec.Command(program, "mcp", r.Addr)})
	var v assistant.Verdict
	call(t, c, "doctor", assistant.Watch{Target: r.Addr, Seconds: 5}, &v)
	if v.Verdict != "findings" || len(v.Findings) == 0 || v.Findings[0].Cause != "slow-command" {
		t.Fatalf("%+v", v)
	}
	f := v.Findings[0]
	if f.ID != "F1" || len(f.Evidence) == 0 || f.Evidence[0].ID != "F1.E1" || len(f.Fix) == 0 {
		t.Errorf("%+v", f)
	}
	if !slices.ContainsFunc(f.Culprits, func(c assistant.Culprit) bool { return c.ClientName.Text == "report" }) {
		t.Errorf("culprits %+v", f.Culprits)
	}
}

// TestAssistantOfAgent: the agent answers assistants at its own address.
func TestAssistantOfAgent(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	dir, err := os.MkdirTemp("/var/tmp", "slowpath-mcp") // which others may enter
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agent := exec.Command(filepath.Join(builtProgram(t), "slowpath"), "serve", "--listen", "127.0.0.1:0",
		"--data", filepath.Join(dir, "data"), r.Addr)
	var log clitest.Output
	agent.Stderr = &log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
	})
	until(t, &log, pageOf.String())
	c := session(t, &mcp.StreamableClientTransport{
		Endpoint: pageOf.FindStringSubmatch(log.String())[1] + "mcp", DisableStandaloneSSE: true,
	})
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Fatalf("%+v, %v", tools, err)
	}
	var found assistant.Incidents
	call(t, c, "incidents", assistant.IncidentsOf{}, &found)
	if len(found.Incidents) != 0 {
		t.Errorf("%+v", found)
	}
	reply, err := c.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "incident", Arguments: assistant.IncidentID{ID: "20261124T031207Z-1"},
	})
	if err != nil || !reply.IsError {
		t.Errorf("an incident that is not there: %+v, %v", reply, err)
	}
}

func session(t *testing.T, to mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// call calls a tool and reads its answer.
func call(t *testing.T, c *mcp.ClientSession, tool string, in, out any) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(body, out)
	}
	if err != nil || r.IsError {
		t.Fatalf("%s: %v: %+v", tool, err, r.Content)
	}
}
