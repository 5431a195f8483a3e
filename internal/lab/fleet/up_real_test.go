package fleet

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

func TestUpListDown(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	f := newFleet(t)
	bin := get(t, servers.Redis7015)
	cluster, err := f.Up(t.Context(), bin, 3, 0, Spec{AOF: true, TLS: true, Password: "x"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := f.Up(t.Context(), bin, 0, 1, Spec{Fleet: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if swept, err := f.Registry.Sweep(t.Context()); err != nil || len(swept) != 0 {
		t.Errorf("Sweep took what is persistent: %v, %v", swept, err)
	}
	listed, err := f.List()
	if err != nil || len(listed) != 5 || listed[0].Fleet != DefaultName || listed[4].Fleet != "plain" {
		t.Fatalf("listed %v, %v", listed, err)
	}
	for _, l := range listed {
		if !l.Running || !l.Own || !l.Persistent || l.Version != bin.Version || l.Addr == "" || l.PID == 0 ||
			l.Dir == "" {
			t.Errorf("listed %+v", l)
		}
	}
	if plain[0].Role != "master" || plain[1].Role != "replica" || cluster[0].Group == plain[0].Group {
		t.Errorf("plain %+v, cluster %+v", plain, cluster)
	}
	if names, err := f.Names(); err != nil || !slices.Equal(names, []string{DefaultName, "plain"}) {
		t.Errorf("names %v, %v", names, err)
	}
	down, err := f.Down(t.Context(), "plain")
	if err != nil || len(down) != 2 {
		t.Errorf("Down of one name: %v, %v", down, err)
	}
	own := start(t, bin, Spec{}) // of a running lab, in another registry
	down, err = f.Down(t.Context(), DefaultName)
	if err != nil || len(down) != 3 || !own.Running() {
		t.Errorf("Down: %v, %v", down, err)
	}
	for _, i := range append(cluster, plain...) {
		checkGone(t, i)
	}
}

// TestDownOfAnotherUser: who calls sudo shares the registry of root, but not what others have started there.
func TestDownOfAnotherUser(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	f := newFleet(t)
	bin := get(t, servers.Redis7015)
	t.Setenv("SUDO_UID", "4321")
	theirs, err := f.Up(t.Context(), bin, 0, 0, Spec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUDO_UID", "4322")
	if down, err := f.Down(t.Context(), DefaultName); err != nil || len(down) != 0 {
		t.Errorf("Down by another user: %v, %v", down, err)
	}
	if names, err := f.Names(); err != nil || len(names) != 0 {
		t.Errorf("names %v, %v", names, err)
	}
	listed, err := f.List()
	if err != nil || len(listed) != 1 || listed[0].Own || listed[0].User != "4321" || !listed[0].Running {
		t.Errorf("listed %+v, %v", listed, err)
	}
	t.Setenv("SUDO_UID", "4321")
	if down, err := f.Down(t.Context(), DefaultName); err != nil || len(down) != 1 {
		t.Errorf("Down: %v, %v", down, err)
	}
	checkGone(t, theirs[0])
}

// TestUpBehindAProxy: what is written through the proxy is on the servers behind it, all stay, and all are removed.
func TestUpBehindAProxy(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Twemproxy, needs.HAProxy)
	f := newFleet(t)
	bin := get(t, servers.Redis7015)
	for name, masters := range map[string]int{Twemproxy: 2, HAProxy: 1, Envoy: 2, Codis: 2} {
		t.Run(name, func(t *testing.T) {
			all, err := f.UpBehind(t.Context(), bin, name, masters, 0, Spec{})
			if errors.Is(err, ErrNoProxy) { // Envoy is downloaded
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != masters+1 || all[masters].Role != "proxy" {
				t.Fatalf("%+v", all)
			}
			front := &Instance{Info: all[masters], registry: f.Registry}
			const written = 100 // by few, a server could get none
			for n := range written {
				if _, err := front.Do(t.Context(), "SET", fmt.Sprint("key:", n), "1"); err != nil {
					t.Fatal(err)
				}
			}
			var keys int64
			for _, i := range all[:masters] {
				n, err := (&Instance{Info: i, registry: f.Registry}).Do(t.Context(), "DBSIZE")
				if err != nil || n == int64(0) {
					t.Errorf("%s: %v keys, %v", i.Addr, n, err)
				}
				own, _ := n.(int64)
				keys += own
			}
			if keys != written {
				t.Errorf("%d of %d keys", keys, written)
			}
			if swept, err := f.Registry.Sweep(t.Context()); err != nil || len(swept) != 0 {
				t.Errorf("Sweep took what is persistent: %v, %v", swept, err)
			}
			if down, err := f.Down(t.Context(), DefaultName); err != nil || len(down) != masters+1 {
				t.Errorf("Down: %v, %v", down, err)
			}
			for _, i := range all {
				checkGone(t, i)
			}
		})
	}
}
