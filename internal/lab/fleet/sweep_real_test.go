package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// helper is a lab: it starts a server of its own and a persistent one, prints that, and waits to be killed.
func helper(dir string) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"error": err.Error()})
			os.Exit(1)
		}
	}
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	fail(err)
	bin, err := cache.Get(ctx, servers.Redis7015, nil)
	fail(err)
	r, err := OpenRegistry(dir)
	fail(err)
	f, err := New(r)
	fail(err)
	own, err := f.Start(ctx, bin, Spec{})
	fail(err)
	stays, err := f.Start(ctx, bin, Spec{Persistent: true})
	fail(err)
	// A server in the moment after its start and before its pid was written down.
	young, err := f.Start(ctx, bin, Spec{})
	fail(err)
	young.process.Process, young.process.Info = Process{}, nil
	fail(r.Update(young.process))
	fail(json.NewEncoder(os.Stdout).Encode(map[string]Info{"own": own.Info, "stays": stays.Info, "young": young.Info}))
	select {}
}

func TestSweepAfterTheLabWasKilled(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	get(t, servers.Redis7015)
	f := newFleet(t)
	lab := exec.CommandContext(t.Context(), os.Args[0])
	lab.Env = append(os.Environ(), helperEnv+"="+f.Registry.dir)
	out, err := lab.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = f.Registry.Down(context.Background(), DefaultName) }()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var made map[string]Info
	if err := json.Unmarshal(line, &made); err != nil || made["own"].PID == 0 {
		t.Fatalf("the helper says %s", line)
	}
	if swept, err := f.Registry.Sweep(t.Context()); err != nil || len(swept) != 0 {
		t.Errorf("swept while the lab lives: %v, %v", swept, err)
	}
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lab.Wait()
	swept, err := f.Registry.Sweep(t.Context())
	if err != nil || len(swept) != 4 {
		t.Errorf("swept %d things, wanted two processes and two directories: %v", len(swept), err)
	}
	checkGone(t, made["own"])
	checkGone(t, made["young"])
	if _, err := RealHost().stat(made["stays"].PID); err != nil {
		t.Errorf("the persistent server was swept: %v", err)
	}
	if down, err := f.Down(t.Context(), DefaultName); err != nil || len(down) != 1 {
		t.Errorf("Down: %v, %v", down, err)
	}
	checkGone(t, made["stays"])
}
