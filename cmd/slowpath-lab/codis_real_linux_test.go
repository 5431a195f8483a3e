package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestLabMigrateSlots: slots move from one server to the other and stay usable; what cannot be is an error of the
// command line.
func TestLabMigrateSlots(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	from := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	to := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := f.StartCodis(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, key := range []string{"{}a", "{}b"} { // slot 0
		if got, err := proxy.Do(t.Context(), "SET", key, "1"); err != nil || got != "OK" {
			t.Fatal(got, err)
		}
	}
	migrate := func(args ...string) (out string, code int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program(t), append([]string{"lab", "migrate-slots"}, args...)...)
		text, _ := cmd.CombinedOutput()
		return string(text), cmd.ProcessState.ExitCode()
	}
	out, code := migrate(proxy.Addr, "0-511", "--to", to.Addr)
	if code != cli.ExitClean || !strings.HasPrefix(out, "slots 0-511 are at "+to.Addr+": 2 keys moved in ") {
		t.Errorf("%d: %s", code, out)
	}
	if n, err := from.Do(t.Context(), "DBSIZE"); err != nil || n != int64(0) {
		t.Errorf("%v keys are left, %v", n, err)
	}
	if got, err := proxy.Do(t.Context(), "GET", "{}b"); err != nil || got != "1" {
		t.Errorf("%v, %v", got, err)
	}
	for _, tt := range []struct{ proxy, to, want string }{
		{proxy.Addr, "127.0.0.1:1", `"127.0.0.1:1" is no server of this proxy; give one of: ` + from.Addr},
		{from.Addr, to.Addr, from.Addr + ": it is no proxy of lab up --proxy codis; see: slowpath lab list"},
	} {
		if out, code := migrate(tt.proxy, "0", "--to", tt.to); code != cli.ExitUsage || !strings.Contains(out,
			tt.want) ||
			strings.Count(out, "\n") != 1 {
			t.Errorf("%d: %s; want %s", code, out, tt.want)
		}
	}
}
