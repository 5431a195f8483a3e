package fleet

import (
	"testing"

	"slowpath/internal/lab/servers"
)

func TestUpListDown(t *testing.T) {
	f := newFleet(t)
	bin := get(t, servers.Redis7015)
	cluster, err := f.Up(t.Context(), bin, 3, 0, Spec{AOF: true, TLS: true, Password: "x"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := f.Up(t.Context(), bin, 0, 1, Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if swept, err := f.Registry.Sweep(t.Context()); err != nil || len(swept) != 0 {
		t.Errorf("Sweep took what is persistent: %v, %v", swept, err)
	}
	listed, err := f.List()
	if err != nil || len(listed) != 5 {
		t.Fatalf("listed %v, %v", listed, err)
	}
	for _, l := range listed {
		if !l.Running || !l.Persistent || l.Version != bin.Version || l.Addr == "" || l.PID == 0 || l.Dir == "" {
			t.Errorf("listed %+v", l)
		}
	}
	if plain[0].Role != "master" || plain[1].Role != "replica" || cluster[0].Group == plain[0].Group {
		t.Errorf("plain %+v, cluster %+v", plain, cluster)
	}
	down, err := f.Down(t.Context(), plain[0].Group)
	if err != nil || len(down) != 2 {
		t.Errorf("Down of one group: %v, %v", down, err)
	}
	own := start(t, bin, Spec{}) // of a running lab, in another registry
	down, err = f.Down(t.Context())
	if err != nil || len(down) != 3 || !own.Running() {
		t.Errorf("Down: %v, %v", down, err)
	}
	for _, i := range append(cluster, plain...) {
		checkGone(t, i)
	}
}
