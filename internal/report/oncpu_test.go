package report

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

func TestOnCPU(t *testing.T) {
	some := verdict.Side{Ns: 2e9, CPUNs: 5e8, Samples: 50}
	f := []verdict.OnCPUFunction{{Name: "lua_pcall", Slow: 0.87, Rest: 0.01}}
	for want, o := range map[string]verdict.OnCPU{
		"redis-server[7] (redis:6379) used 25 % of a CPU in the 2.00 s in which calls were slow, 50 % in the " +
			"rest": {Name: "redis-server[7]", Node: "redis:6379", Slow: some, Rest: verdict.Side{
			Ns: 1e9, CPUNs: 5e8,
			Samples: 50,
		}, Functions: f, Differs: true},
		"    87 % slow, 1 % otherwise: lua_pcall": {Name: "x", Slow: some, Rest: some, Functions: f, Differs: true},
		"no function differs":                     {Name: "x", Slow: some, Rest: some, Functions: f},
		"x used 25 % of a CPU; no call was slow":  {Name: "x", Rest: some},
		"x was not seen on the CPU":               {Name: "x"},
	} {
		if text := textOfOnCPU(t, []verdict.OnCPU{o}); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := textOfOnCPU(t, nil); text != "" {
		t.Errorf("%s", text)
	}
	if text := textOfOnCPU(t, make([]verdict.OnCPU, maxProcesses+2)); !strings.Contains(text, "2 more") {
		t.Errorf("%s", text)
	}
}

func textOfOnCPU(t *testing.T, all []verdict.OnCPU) string {
	t.Helper()
	p := newPage(layout.Style{Width: 200})
	p.onCPU(all)
	var buf bytes.Buffer
	if err := p.To(&buf, "the text"); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}
