package watch

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/stats"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

const (
	pollingClients  = 200             // clients that refresh their map
	clientPollEvery = 5 * time.Second // as ioredis 4 does; go-redis 8.11 to 9.17 10 s, Lettuce and go-redis 9.22 60 s
	window          = 10 * time.Second
)

// cost measures the nodes' CPU in several rounds: without clients, with a watch, with clients that poll the map.
func (m *measurements) cost() {
	states := []string{"idle", "watch", "pollers"}
	spent := map[string][][]float64{} // percent of a CPU by state, round and node
	reported := map[string][]float64{}
	for range number("WATCH_ROUNDS", 4) {
		for _, state := range states {
			stop := m.enter(state)
			await.Pass(2 * time.Second) // until the watch is connected to all nodes and has measured the commands
			bySched, byInfo := m.measure()
			stop()
			spent[state] = append(spent[state], bySched)
			reported[state] = append(reported[state], byInfo)
		}
	}
	idle, watch, poll := medians(spent["idle"]), medians(spent["watch"]), medians(spent["pollers"])
	for i := range watch {
		watch[i] -= idle[i]
		poll[i] -= idle[i]
	}
	m.print("CPU of the nodes (masters, then replicas), %% of one, median of rounds of %v: idle %.3f; more with a "+
		"watch %.3f; with %d clients that ask for CLUSTER SLOTS every %v %.3f",
		window, idle, watch, pollingClients, clientPollEvery, poll)
	idleCPU := stats.Median(reported["idle"])
	m.print("the same by used_cpu of INFO, all six: idle %.3f, watch %+.3f, pollers %+.3f", idleCPU,
		stats.Median(reported["watch"])-idleCPU, stats.Median(reported["pollers"])-idleCPU)
}

func (m *measurements) enter(state string) (stop func()) {
	switch state {
	case "watch":
		m.watch()
		return m.stop
	case "pollers":
		return m.poll()
	}
	return func() {}
}

// poll has clients ask a random node for the map every so often, each on a connection of its own.
func (m *measurements) poll() (stop func()) {
	ctx, cancel := context.WithCancel(m.Context())
	var wg sync.WaitGroup
	for range pollingClients {
		t, err := target.Parse(m.cluster.Nodes[rand.N(len(m.cluster.Nodes))].Addr)
		m.check(err)
		s, _, err := session.Open(ctx, t, "poller")
		m.check(err)
		wg.Go(func() {
			defer s.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(clientPollEvery/2 + rand.N(clientPollEvery)):
					_, _ = s.Do(ctx, "CLUSTER", "SLOTS") // fails only at the end
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// measure gives the CPU of each node during a window, in percent of one, by the kernel's account, and that of all by
// INFO.
func (m *measurements) measure() (nodes []float64, all float64) {
	before, infoBefore := m.cpu()
	start := time.Now()
	await.Pass(window)
	after, infoAfter := m.cpu()
	took := time.Since(start)
	for i := range after {
		nodes = append(nodes, 100*float64(after[i]-before[i])/float64(took))
	}
	return nodes, 100 * (infoAfter - infoBefore) / took.Seconds()
}

func (m *measurements) cpu() (nodes []time.Duration, seconds float64) {
	for i, n := range m.cluster.Nodes {
		v, err := m.links[i].Do(m.Context(), "INFO", "cpu")
		m.check(err)
		for l := range strings.Lines(v.Text()) {
			name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
			if name == "used_cpu_sys" || name == "used_cpu_user" {
				s, _ := strconv.ParseFloat(value, 64)
				seconds += s
			}
		}
		nodes = append(nodes, cpuOf(n.PID))
	}
	return nodes, seconds
}

// medians is the median of the rounds for each node.
func medians(rounds [][]float64) []float64 {
	out := make([]float64, len(rounds[0]))
	for i := range out {
		var of []float64
		for _, r := range rounds {
			of = append(of, r[i])
		}
		out[i] = stats.Median(of)
	}
	return out
}
