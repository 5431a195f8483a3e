//go:build linux

package tap

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestLeavesOutOnlyWhatIsRefused: a kernel that refuses one program loses what that one sees, and nothing else.
func TestLeavesOutOnlyWhatIsRefused(t *testing.T) {
	needs.Real(t, needs.BPF)
	refused := asm.Instructions{asm.Mov.Reg(asm.R0, asm.R9), asm.Return()} // R9 was never set
	for name, c := range map[string]struct{ broken, losing []string }{
		"none": {},
		"one":  {[]string{kernelProgOnConnSnapshot}, []string{losingSnapshots}},
		"hooks of processes": {
			[]string{kernelProgOnSslReturn, kernelProgOnFunctionEntry},
			[]string{optional[0].losing, optional[1].losing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := specWith(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.broken {
				spec.Programs[p].Instructions = refused
			}
			l, err := load(spec)
			attached(t, err)
			defer l.Close()
			for _, want := range c.losing {
				if !slices.ContainsFunc(l.blind, func(b recording.BlindSpot) bool { return b.What == want }) {
					t.Errorf("%q is not said to be lost: %v", want, l.blind)
				}
			}
			if len(l.blind) != len(c.losing) {
				t.Errorf("lost %v, want %v", l.blind, c.losing)
			}
			for _, p := range processPrograms {
				in := func(o optionalPrograms) bool { return slices.Contains(o.programs, p) }
				lost := slices.Contains(c.losing, optional[slices.IndexFunc(optional, in)].losing)
				if loaded := l.coll.Programs[p] != nil; loaded == lost {
					t.Errorf("%s is loaded: %v", p, loaded)
				}
			}
		})
	}
}
