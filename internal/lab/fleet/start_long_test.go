package fleet

import (
	"net"
	"os"
	"strconv"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

func TestStartEveryVersion(t *testing.T) {
	needs.Long(t)
	for _, name := range servers.Known() {
		t.Run(string(name), func(t *testing.T) {
			bin := get(t, name)
			i := start(t, bin, Spec{AOF: true, UnixSocket: true})
			if i.Version != bin.Version {
				t.Errorf("INFO says %s, wanted %s", i.Version, bin.Version)
			}
			if i.Port >= portCeiling || !i.Running() {
				t.Errorf("port %d, running %v", i.Port, i.Running())
			}
			comm, err := os.ReadFile("/proc/" + strconv.Itoa(i.PID) + "/comm")
			if want := bin.Product + "-server\n"; err != nil || string(comm) != want {
				t.Errorf("comm %q, wanted %q: %v", comm, want, err)
			}
			if got := do(t, i, "SET", "k", "v"); got != "OK" {
				t.Errorf("SET: %q", got)
			}
			c, err := net.Dial("unix", i.Socket)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
}
