package host

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestZZCost(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("ZZPID"))
	if pid == 0 {
		t.Skip()
	}
	d, _ := time.ParseDuration(os.Getenv("ZZFINE"))
	sink := &memory{}
	c0 := cpuOfProcess()
	b := time.Now()
	pr, err := Locate(nil, Query{Listen: "127.0.0.1:22050", WantPID: pid})
	t.Log(pr, err, time.Since(b))
	b = time.Now()
	c0 = cpuOfProcess()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	Watch(ctx, Options{Sink: sink, Node: node, Process: pr, FineEvery: d})
	v, _ := sink.value("self", "host.cpu_ns")
	r, _ := sink.value("self", "host.reads")
	t.Logf("process %.3f%% threads %.3f%% reads/s %.0f samples %d events %d", 100*float64(cpuOfProcess()-c0)/float64(time.Since(b)), 100*v/1e10, r/10, len(sink.samples), len(sink.events))
	if os.Getenv("ZZDUMP") != "" {
		seen := map[string]bool{}
		for i := len(sink.samples) - 1; i >= 0; i-- {
			s := sink.samples[i]
			k := s.Subject + " " + s.Name
			if !seen[k] {
				seen[k] = true
				t.Logf("%s = %.3f", k, s.Value)
			}
		}
		for _, s := range sink.snapshots {
			t.Log(s.Subject, s.Name, s.Body)
		}
		for _, e := range sink.events {
			t.Log(e.Kind, e.DurationNs/1e6, e.Detail)
		}
	}
}
