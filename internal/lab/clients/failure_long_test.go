package clients

import (
	"errors"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestOldClients is the mechanism of the scenario cmdinfo-once-lock: go-redis v6 sends COMMAND to Redis 6.0 again
// before each call, under one lock. It checks the server's own count of COMMAND.
func TestOldClients(t *testing.T) {
	needs.Long(t)
	c := cluster(t, servers.Redis6016)
	commandCalls := func() int {
		n := 0
		for _, node := range c.Nodes {
			text, err := node.Do(t.Context(), "INFO", "commandstats")
			if err != nil {
				t.Fatal(err)
			}
			n += calls(text.(string), "cmdstat_command")
		}
		return n
	}
	o := Options{
		Addresses: c.Addrs(), Mode: protocol.Cluster, Workers: 4, Duration: time.Second,
		Commands: []Command{{Args: []string{"GET", "k"}}},
	}
	perCall := map[Name]float64{}
	for _, name := range []Name{GoRedis6, GoRedis8, GoRedis9} {
		before := commandCalls()
		sum, err := program(t, name).Run(t.Context(), t.TempDir(), o)
		if err != nil || sum.Calls == 0 {
			t.Fatalf("%s: %v, %v", name, err, sum)
		}
		perCall[name] = float64(commandCalls()-before) / float64(sum.Calls)
		t.Logf("%s: %.0f calls/s, %.3f COMMAND per call, %v", name, sum.PerSecondMean(), perCall[name], sum)
	}
	if perCall[GoRedis6] < 1 || perCall[GoRedis8] > 0.5 || perCall[GoRedis9] > 0.5 {
		t.Errorf("COMMAND per call: %v", perCall)
	}
}

// calls returns the number of calls of one command in INFO commandstats.
func calls(info, name string) int {
	_, rest, _ := strings.Cut(info, name+":calls=")
	n := 0
	for _, r := range rest {
		if r < '0' || r > '9' {
			break
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// TestRefusedHello: libraries that speak RESP3 only fail with HELLO at a server without it, and do not retry for ever.
func TestRefusedHello(t *testing.T) {
	needs.Long(t)
	i := fleettest.Start(t, servers.Redis506, fleet.Spec{})
	for _, name := range []Name{NodeRedis, RedisPy} {
		t.Run(string(name), func(t *testing.T) {
			o := Options{
				Addresses: []string{i.Addr}, Workers: 1, Rate: 20, Duration: 300 * time.Millisecond,
				Commands: []Command{{Args: []string{"GET", "k"}}},
			}
			sum, err := program(t, name).Run(t.Context(), t.TempDir(), o)
			said := sum.LastError
			if errors.Is(err, ErrConnect) {
				said, err = err.Error(), nil
			}
			if err != nil || !strings.Contains(said, "HELLO") {
				t.Errorf("%v, %v: %q", err, sum, said)
			}
		})
	}
}
