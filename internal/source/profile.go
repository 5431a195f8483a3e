package source

import (
	"context"
	"errors"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile"
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
	if r.profiles == nil && !r.samplesCPU() {
		return
	}
	r.status(recording.SourceProfile, r.profiles != nil || r.cpuClock != nil, "the CPU time of no process can be "+
		"sampled")
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

// loadCPU loads the program that samples CPU time, where that was asked for.
func (r *run) loadCPU() error {
	if !r.samplesCPU() {
		return nil
	}
	r.Progress("loading the program that samples CPU time")
	r.cpuClock = profile.LoadCPU(profile.Options{FS: r.FS, For: r.For, Clock: r.Clock, Sink: r.sink})
	if r.cpuClock.Forbidden() {
		r.closeCPU()
		return ErrMaySample
	}
	return nil
}

// startCPU starts to sample CPU time. A process that was named by its PID and is not there ends the watch before it
// begins; what the kernel does not allow is a blind spot.
func (r *run) startCPU() error {
	if !r.samplesCPU() {
		return nil
	}
	var all []profile.Process
	if r.CPU {
		for _, n := range r.nodes {
			if n.process != nil {
				all = append(all, profile.Process{PID: n.process.PID, Node: n.address})
			}
		}
		if r.Processes.PID != 0 {
			all = append(all, profile.Process{PID: r.Processes.PID})
		}
	}
	for _, pid := range r.CPUOf {
		all = append(all, profile.Process{PID: pid, Node: r.nodeOf(pid)})
	}
	spot := recording.BlindSpot{What: "where CPU time goes (--profile cpu)"}
	if len(all) == 0 {
		spot.Why, spot.Enable = "no server that is watched runs on this host", "run slowpath on the server's host, "+
			"or name a process: --profile cpu:PID"
		r.closeCPU()
		r.blind(r.nodes[0].address, spot)
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
		spot.Why, spot.Enable = err.Error(), "run as root, on Linux 5.17 or later"
		r.blind(r.nodes[0].address, spot)
	}
	return nil
}

func (r *run) closeCPU() {
	if r.cpuClock != nil {
		_ = r.cpuClock.Close() // it has sampled nothing
		r.cpuClock = nil
	}
}

func (r *run) samplesCPU() bool { return r.CPU || len(r.CPUOf) > 0 }

// nodeOf is the address of the watched server that a process is, empty for other processes.
func (r *run) nodeOf(pid int) string {
	for _, n := range r.nodes {
		if n.process != nil && n.process.PID == pid {
			return n.address
		}
	}
	return ""
}
