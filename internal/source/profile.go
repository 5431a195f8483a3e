package source

import (
	"context"
	"errors"
	"fmt"
	"path"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/profile/sampler"
	"slowpath/internal/source/tap"
)

// openProfiles asks the applications that the user named whether they can be profiled. One that is not there ends the
// watch before it begins: its address is wrong.
func openProfiles(ctx context.Context, o Options, sink recording.ProfileSink) (*profile.Source, error) {
	if len(o.Profiles) == 0 {
		return nil, nil
	}
	o.Progress("connecting to the applications that are to be profiled")
	ctx, cancel := context.WithTimeout(ctx, max(o.Timeout, DefaultTimeout))
	defer cancel()
	return profile.Open(ctx, profile.Options{FS: o.FS, Targets: o.Profiles, For: o.For, Clock: o.Clock, Sink: sink})
}

// attachProfiles has JVMs open the sockets at which they are asked: that takes the rights of their users, or root's.
func (r *run) attachProfiles(ctx context.Context) error {
	return profile.Attach(ctx, profile.Options{FS: r.FS, Targets: r.Profiles})
}

// describeProfiles records whether the profile source ran. It is not listed where nobody asked for it.
func (r *run) describeProfiles() {
	used := r.profiles != nil || r.cpuClock != nil
	if !used && !r.asksForCPU() {
		return
	}
	r.status(recording.SourceProfile, used, "the CPU time of no process can be sampled")
	if r.Frames != "" {
		r.sink.Snapshot(recording.Snapshot{
			TimeNs: r.Clock.Now(), Source: recording.SourceProfile,
			Subject: recording.SubjectSelf,
			Name:    recording.SnapshotFrames, Body: r.Frames,
		})
	}
}

// ErrMaySample says that this user may not sample CPU time, which was asked for.
var ErrMaySample = errors.New("--profile: this user may not sample CPU time: it needs root, or CAP_BPF and " +
	"CAP_PERFMON; run slowpath by sudo, or leave --profile out")

// loadCPU loads the program that samples CPU time. That it may not is an error only where that was asked for.
func (r *run) loadCPU() error {
	if !r.asksForCPU() && (!r.MainThreads || r.NoHost) {
		return nil
	}
	r.Progress("loading the program that samples CPU time")
	r.cpuClock = profile.LoadCPU(profile.Options{FS: r.FS, For: r.For, Clock: r.Clock, Sink: r.sink})
	if r.asksForCPU() && r.cpuClock.Forbidden() {
		r.closeCPU()
		return ErrMaySample
	}
	return nil
}

// startCPU starts to sample CPU time. A process that was named by its PID and is not there ends the watch before it
// begins; what the kernel does not allow is a blind spot.
func (r *run) startCPU() error {
	if r.cpuClock == nil {
		return nil
	}
	all := r.sampledProcesses()
	spot := recording.BlindSpot{What: "where CPU time goes (--profile cpu)"}
	if !r.asksForCPU() {
		spot.What = "which functions the server's main thread runs"
	}
	if len(all) == 0 && (r.asksForCPU() || r.kernel == nil) {
		r.closeCPU()
		if r.asksForCPU() {
			spot.Why, spot.Enable = "no server that is watched runs on this host", "run slowpath on the server's "+
				"host, or name a process: --profile cpu:PID"
			r.blind(r.nodes[0].address, spot)
		}
		return nil
	}
	err := r.cpuClock.Start(all)
	if err != nil {
		r.closeCPU()
	}
	if errors.Is(err, profile.ErrTarget) {
		return err
	}
	if err != nil {
		r.blindCPU(spot, err)
	}
	return nil
}

// blindCPU says why CPU time is not sampled; where nobody asked for that, only if the reason is not said of the tap,
// which needs the same rights and more.
func (r *run) blindCPU(spot recording.BlindSpot, err error) {
	spot.Why, spot.Enable = err.Error(), "run as root, on Linux 5.17 or later"
	if errors.Is(err, sampler.ErrPrivilege) {
		if r.noTap != nil && !r.asksForCPU() {
			return
		}
		spot.Why, spot.Enable = sampler.ErrPrivilege.Error(), tap.Remedy(tap.ErrPrivilege)
	}
	r.blind(r.nodes[0].address, spot)
}

// sampledProcesses are those that were asked for, and the servers of this host, of which only the main thread is
// sampled where nobody asked for more.
func (r *run) sampledProcesses() (all []profile.Process) {
	for _, pid := range r.CPUOf {
		all = append(all, profile.Process{PID: pid, Node: r.nodeOf(pid), Loop: host.LoopThread(r.FS, pid)})
	}
	if r.CPU && r.Processes.PID != 0 {
		all = append(all, profile.Process{PID: r.Processes.PID})
	}
	for _, n := range r.nodes {
		if n.process != nil && (r.CPU || r.MainThreads) {
			all = append(all, r.sampledServer(n, n.process.PID))
		}
	}
	return all
}

func (r *run) sampledServer(n node, pid int) profile.Process {
	return profile.Process{PID: pid, Node: n.address, Loop: host.LoopThread(r.FS, pid), LoopOnly: !r.CPU}
}

// followCPU samples the next process of a server.
func (r *run) followCPU(n node, ended, pid int) {
	if r.cpuClock == nil || !r.CPU && !r.MainThreads {
		return
	}
	if err := r.cpuClock.Follow(ended, r.sampledServer(n, pid)); err != nil {
		r.blind(n.address, recording.BlindSpot{
			What: "which functions the server runs since its restart", Why: err.Error(), Enable: "watch again",
		})
	}
}

// followCaller samples a program that calls, as a whole: what calls may be any thread of it. Of Node it is the main
// thread; the others are the engine's.
func (r *run) followCaller(pid int) {
	if r.cpuClock == nil {
		return
	}
	p := profile.Process{PID: pid, LoopOnly: true}
	exe, _ := r.FS.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	switch {
	case profile.IsJVM(r.FS, pid):
		p.Runtime = "jvm"
	case path.Base(exe) == "node":
		p.Loop = pid
	}
	_ = r.cpuClock.Follow(0, p) // it may have ended
}

func (r *run) closeCPU() {
	if r.cpuClock != nil {
		_ = r.cpuClock.Close() // it has sampled nothing
		r.cpuClock = nil
	}
}

// asksForCPU reports whether the user asked for samples, and not only for a watch.
func (r *run) asksForCPU() bool { return r.CPU || len(r.CPUOf) > 0 }

// nodeOf is the address of the watched server that a process is, empty for other processes.
func (r *run) nodeOf(pid int) string {
	for _, n := range r.nodes {
		if n.process != nil && n.process.PID == pid {
			return n.address
		}
	}
	return ""
}
