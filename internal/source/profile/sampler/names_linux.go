package sampler

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/source/profile/symbol"
)

// refreshEvery is how often the mappings of a process are read again at most.
const refreshEvery = int64(2 * time.Second)

// symbols finds the names of the functions in samples.
type symbols struct {
	Options
	unwinder
	period    time.Duration // between two samples of a CPU
	kernel    *symbol.Kernel
	kallsyms  *os.File // nil: it cannot be read
	read      int64    // when the kernel's symbols were last read
	reads     int      // how often they were read
	files     symbol.Files
	processes map[int]*process
	quiet     sync.Map // by pid: whether nothing is said of names that are missing
}

type process struct {
	*symbol.Process // nil: it has ended, or may not be read
	refreshed       int64
	// that its compiled code, or functions that it does not export, have no names was reported, or is not to be
	jit, stripped bool
}

func openSymbols(arch string, o Options) (*symbols, error) {
	u, err := newUnwinder(arch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	s := &symbols{Options: o, unwinder: u, files: symbol.Files{}, processes: map[int]*process{}}
	// It shows addresses to who opened it, also once that one has given up its privileges.
	s.kallsyms, _ = o.FS.OpenRegular(symbol.Kallsyms, true)
	return s, nil
}

func (s *symbols) close() {
	if s.kallsyms != nil {
		_ = s.kallsyms.Close() // only read
		s.kallsyms = nil
	}
}

// Bounds of reading the kernel's symbols, which takes about 50 ms.
const (
	kernelReads = 3
	kernelEvery = int64(5 * time.Second)
)

func (s *symbols) readKernel() {
	k, err := symbol.ReadKernel(s.kallsyms)
	s.read = s.Clock.Now()
	if s.reads++; err == nil {
		s.kernel = k
	} else if s.reads == 1 {
		s.Blind(0, "names of the kernel's functions", err.Error(), "run as root; sysctl kernel.kptr_restrict=1")
	}
}

// function names what is in the kernel. BPF programs come and go, as those of slowpath that are loaded after this one:
// an address after one that is known may be of one that is not.
func (s *symbols) function(at uint64) string {
	if s.reads == 0 {
		s.readKernel()
	}
	if s.kernel == nil {
		return "?"
	}
	name := s.kernel.Function(at)
	if strings.HasPrefix(name, "bpf_") && s.reads < kernelReads &&
		(s.reads == 1 || s.Clock.Now()-s.read > int64(kernelEvery)) {
		s.readKernel()
		name = s.kernel.Function(at)
	}
	return name
}

// process reads what a process has mapped, when it is first seen: it may have ended when its samples are read.
func (s *symbols) process(pid int) *process {
	p := s.processes[pid]
	if p == nil {
		p = &process{refreshed: s.Clock.Now()}
		if quiet, ok := s.quiet.Load(pid); ok && quiet.(bool) {
			p.jit, p.stripped = true, true
		}
		var err error
		if p.Process, err = symbol.OpenProcess(s.FS, pid, s.files); err != nil {
			p.Process = nil
			s.Blind(pid, "names of its functions", err.Error(), "run as root")
		} else if err := p.LeftOut(); err != nil {
			s.Blind(pid, "names of functions in its last mappings", err.Error(), "")
		}
		s.processes[pid] = p
	}
	return p
}

// name turns a sample of the kernel into names.
func (s *symbols) name(r raw) Sample {
	out := Sample{TimeNs: int64(r.Time), PID: int(r.Pid), TID: int(r.Tid), Thread: text(r.Comm[:]), CPU: s.period}
	if p := s.process(out.PID); p.Process != nil {
		places, cut := s.walk(p, r)
		if s.unknown(p, places) && s.Clock.Now()-p.refreshed > int64(refreshEvery) {
			p.refreshed = s.Clock.Now()
			if p.Refresh() == nil {
				places, cut = s.walk(p, r)
			}
		}
		for i, at := range places {
			if i > 0 {
				at--
			}
			out.User = append(out.User, p.Function(at))
		}
		slices.Reverse(out.User)
		out.Cut = cut
		s.reportMissing(p, out)
	}
	for _, at := range r.Kernel[:min(int(r.KernelBytes)/8, len(r.Kernel))] {
		out.Kernel = append(out.Kernel, s.function(at))
	}
	slices.Reverse(out.Kernel)
	return out
}

// unknown reports whether a stack has addresses outside of all mappings, or code without a name: it was mapped, or
// compiled, after the last refresh.
func (s *symbols) unknown(p *process, places []uint64) bool {
	return len(places) == 0 || slices.ContainsFunc(places, func(at uint64) bool { return p.Function(at) == "[jit]" })
}

// reportMissing reports once which names of a process are missing.
func (s *symbols) reportMissing(p *process, out Sample) {
	if !p.stripped && slices.Contains(out.User, p.Unnamed()) {
		p.stripped = true
		if f := p.Program(); f != nil && f.Stripped {
			s.Blind(out.PID, "names of functions that it does not export", f.Name+" is stripped of its symbols",
				"install its debug symbols (Debian: its -dbgsym package; build id "+f.BuildID+")")
		}
	}
	if !p.jit && slices.Contains(out.User, "[jit]") && !p.HasJITMap() {
		p.jit = true
		enable := "node --perf-basic-prof; python -X perf"
		if p.Runs("libjvm.so") {
			enable = fmt.Sprintf("jcmd %d Compiler.perfmap, once it is warm (JDK 17 or later)", out.PID)
		}
		s.Blind(out.PID, "names of functions that it compiles at run time", "it writes no /tmp/perf-PID.map", enable)
	}
}

func text(name []int8) string {
	b := make([]byte, len(name))
	for i, c := range name {
		b[i] = byte(c)
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
