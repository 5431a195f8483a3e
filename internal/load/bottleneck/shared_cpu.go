package bottleneck

import (
	"fmt"
	"slices"

	"slowpath/internal/format"
)

// oneCPU: both may run on one CPU only, the same.
func (c *analysis) oneCPU() bool {
	return c.oneHost() && len(c.generator.CPUs) == 1 && slices.Equal(c.generator.CPUs, c.server.CPUs)
}

// machineFull: no CPU on which the generator may run had time left.
func (c *analysis) machineFull() bool {
	cpus := c.generator.CPUs
	return len(cpus) > 0 && len(c.Machine) > 0 && c.busyCPUs(cpus) >= allCPUsBusy*float64(len(cpus))
}

// sharedCPU: a thread of this side waited in the run queue, for this share of the time. Who kept it off the CPU shows
// in how much of the CPUs server, generator and others used.
func (c *analysis) sharedCPU(side string, runQueue float64) Verdict {
	v := Verdict{By: BySharedCPU, Certainty: 0.9, GeneratorLimited: c.oneHost()}
	cpus := c.sharedCPUs()
	server, generator := c.usedCPUs()
	others := max(0, c.busyCPUs(cpus)-server-generator)
	waited := fmt.Sprintf("the %s waited in the run queue for %s of the time", side, percent(runQueue))
	machine := fmt.Sprintf("others use %.1f of the %s of this machine, and %s; wait until the machine is idle, or use "+
		"another", others, format.Count(len(cpus), "CPU"), waited)
	switch {
	case !c.oneHost() || len(cpus) == 0:
		v.Sentence = waited + ": something else has the CPU; give it CPUs of its own"
		v.GeneratorLimited = side == "generator"
	case c.oneCPU() && others < contended:
		v.Sentence = fmt.Sprintf("the two share one CPU: server and generator both run on CPU %d only, and %s; give "+
			"them a CPU each", cpus[0], waited)
	case others >= contended && !c.machineFull():
		v.Sentence, v.Certainty = machine, 0.8
	case others >= contended:
		v.Sentence, v.Certainty = "the CPUs are full: "+machine, 0.8
	case !c.machineFull():
		v.Sentence = waited + " although other CPUs were idle: the scheduler placed both on one; pin them to " +
			"different CPUs (taskset)"
		v.Certainty = 0.7
	default:
		do := "use fewer --threads, or another machine for the generator"
		if c.Pool != nil {
			do = "use another machine for the generator"
		}
		v.Sentence = fmt.Sprintf("the CPUs are full: server and generator together use %.1f of %d, and %s; %s",
			server+generator, len(cpus), waited, do)
	}
	return v
}

// sharedCPUOfLongerQueue is sharedCPU of the side that waited longer in the run queue.
func (c *analysis) sharedCPUOfLongerQueue() Verdict {
	if c.server.runQueue >= c.generator.runQueue {
		return c.sharedCPU("server", c.server.runQueue)
	}
	return c.sharedCPU("generator", c.generator.runQueue)
}
