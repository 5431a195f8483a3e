package host

import "slowpath/internal/recording"

// addFrozen adds a step in which the thread was stopped at one of its ends or at both.
func (s *states) addFrozen(p *step) {
	before, after := p.prev.frozenBy, p.cur.frozenBy
	x := stateSpan{kind: recording.KindFrozen, from: p.prev.at, to: p.cur.at}
	ran := min(p.ran, p.dt)
	switch {
	case before != "" && after != "":
		x.ns = p.dt - ran
	case after != "":
		x.from += ran + (p.dt-ran)/2
		x.ns = x.to - x.from
	case before != "":
		x.to -= ran + (p.dt-ran)/2
		x.ns = x.to - x.from
	default:
		return
	}
	x.detail.Cgroup = after
	if after == "" {
		x.detail.Cgroup = before
	}
	if x.detail.Cgroup == "-" {
		x.detail.Cgroup = ""
	}
	s.frozen.add(x)
}

// addBlocked adds a step with an uninterruptible sleep, or one that holds up the server, at one of its ends or at both.
// Between two such readings all the time off the CPU counts as blocked. With one it does so when the thread only went
// from running to blocked or back. When it slept in the step as well, it is not known for how long, and half of it
// counts.
func (s *states) addBlocked(p *step) {
	before, after := p.prev.isBlocked(), p.cur.isBlocked()
	if !before && !after {
		return
	}
	seen, other := p.cur, p.prev
	if !after {
		seen, other = p.prev, p.cur
	}
	x := stateSpan{
		kind: recording.KindBlocked, from: p.prev.at, to: p.cur.at,
		detail: recording.ThreadDetail{
			Syscall: seen.syscall, Wchan: seen.wchan, File: seen.File, Device: seen.Device, Other: seen.Other,
		},
	}
	x.ns = max(0, p.dt-p.ran-min(p.waited, p.dt))
	if before != after && (p.arrivals > 1 || other.state != 'R') {
		x.ns /= 2
	}
	switch {
	case before && !after:
		x.to = x.from + x.ns
	case after && !before:
		x.from = x.to - x.ns
	}
	if open := s.blocked.open.detail; s.blocked.any && (x.detail.Syscall == open.Syscall || x.detail.Syscall == "") {
		// One system call sleeps at several places of the kernel, and it can end before its name is read.
		x.detail = open
	}
	s.blocked.add(x)
}

func (t *reading) isBlocked() bool { return (t.state == 'D' || t.heldUp) && t.frozenBy == "" }
