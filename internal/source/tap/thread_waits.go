//go:build linux

package tap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// maxWaiting is of how many processes it is recorded what their threads waited for, those with the most time.
const maxWaiting = 100

// maxLoops threads of a process that wait for events are recorded.
const maxLoops = 8

// writeWaits records what the threads of clients, and the goroutines, waited for since the watch began.
func (t *Tap) writeWaits() {
	for pid := range t.goPrograms.since {
		t.writeLibraryWaits(pid)
	}
	sums := map[uint32]*recording.ThreadWaits{}
	of := func(pid uint32) *recording.ThreadWaits {
		if sums[pid] == nil {
			sums[pid] = &recording.ThreadWaits{}
		}
		return sums[pid]
	}
	now := uint64(t.Clock.Now() - t.offset)
	calls := map[kernelSleepKey]kernelSleeps{}
	t.counts.eachSystemCall(func(k kernelSleepKey, s kernelSleeps) { calls[k] = s })
	t.counts.eachThread(func(th *kernelThread) {
		if th.Server != 0 || th.Caller.Began == 0 || now < th.Caller.Began {
			return
		}
		clk := th.Clk
		if th.State < uint32(clocks) && now > th.Since {
			clk.Ns[th.State] += now - th.Since
		}
		w := th.Caller.Waits
		if th.State == uint32(asleep) && now > th.Since {
			why, ns := kernelReason(th.Caller.Why)&kernelReasonREASON_MASK, now-th.Since
			if waitsForPeer(th) { // it has not answered yet
				why = kernelReasonFOR_PEERS
				of(th.Tgid).Outside.Add(recording.WaitsFor{Address: peerText(th.Caller.Peer), Ns: int64(ns), Waits: 1})
			}
			w.Ns[why] += ns
		}
		if isInCall(th) && now > th.Since {
			k := sleepKey(th)
			s, known := calls[k]
			if !known {
				s.File = th.File
			}
			s.Ns, s.Waits = s.Ns+now-th.Since, s.Waits+1
			calls[k] = s
		}
		if w := of(th.Tgid); th.Caller.Loop != 0 && len(w.LoopTIDs) < maxLoops {
			w.LoopTIDs = append(w.LoopTIDs, int(th.Tid))
		}
		t.addWaits(of(th.Tgid), 1, now-th.Caller.Began, clk, w)
	})
	for _, w := range sums {
		w.NoLoop = len(w.LoopTIDs) == 0
	}
	t.counts.eachEnded(func(pid uint32, w *kernelProcessWaits) {
		of(pid).NoLoop = false // it is not known of those that ended
		t.addWaits(of(pid), int(w.Threads), w.Ns, w.Clk, w.Waits)
	})
	t.counts.eachPeer(func(k kernelPeerKey, p kernelPeer) {
		w, at := sums[k.Tgid], peerText(k)
		if w != nil && p.Waits > 0 {
			w.Outside.Add(recording.WaitsFor{Address: at, Ns: int64(p.Ns), Waits: int64(p.Waits)})
		}
		if w != nil && p.Requests > 0 {
			w.Asked.Add(recording.WaitsFor{Address: at, Ns: int64(p.FlightNs), Waits: int64(p.Requests)})
		}
	})
	for k, s := range calls {
		if w := sums[k.Tgid]; w != nil {
			w.Outside.Add(t.recorder.systemCall(k, s))
		}
	}
	if f := t.recorder.filter; f != nil {
		maps.DeleteFunc(sums, func(pid uint32, _ *recording.ThreadWaits) bool {
			return !f.check(process{pid: int(pid)}, t.Clock.Now()).selected
		})
	}
	pids := slices.Collect(maps.Keys(sums))
	slices.SortFunc(pids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(sums[b].Ns, sums[a].Ns), cmp.Compare(a, b))
	})
	for _, pid := range pids[:min(len(pids), maxWaiting)] {
		sums[pid].Outside.Keep()
		sums[pid].Asked.Keep()
		t.Sink.Snapshot(recording.Snapshot{
			TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: recording.ProcessPrefix + itoa(int(pid)),
			Name: recording.SnapshotWaits, Body: recording.Detail(sums[pid]),
		})
	}
}

// waitsForPeer reports whether a thread that sleeps has asked another service, and does not wait for whatever comes
// first.
func waitsForPeer(th *kernelThread) bool {
	c, why := &th.Caller, kernelReason(th.Caller.Why)
	if th.Syscall == unix.SYS_ACCEPT || th.Syscall == unix.SYS_ACCEPT4 || c.Peer.Family == 0 {
		return false
	}
	return why == kernelReasonFOR_OTHERS && !isInCall(th) || why == kernelReasonFOR_EVENTS && c.Loop == 0
}

// isInCall reports whether a client's thread sleeps in a system call that is neither about its events nor about what
// somebody sends to it; see in_a_call of the programs.
func isInCall(th *kernelThread) bool {
	if th.State == uint32(blocked) {
		return true
	}
	if th.State != uint32(asleep) || kernelReason(th.Caller.Why) != kernelReasonFOR_OTHERS {
		return false
	}
	switch th.Syscall {
	case unix.SYS_RECVFROM, unix.SYS_RECVMSG:
		return false
	case unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG:
		return true
	}
	return th.File.Mode&unix.S_IFMT != unix.S_IFSOCK
}

// sleepKey is what the present sleep of a thread counts under; see add_sleep of the programs.
func sleepKey(th *kernelThread) kernelSleepKey {
	k := kernelSleepKey{
		Tgid: th.Tgid, Syscall: th.Syscall, Fd: int32(kernelDescriptorALL_OTHERS), Device: th.File.Device,
		Type: uint32(th.File.Mode & unix.S_IFMT),
	}
	if th.Syscall >= 0 && th.Arg >= 0 && th.Arg < k.Fd {
		k.Fd = th.Arg
	}
	return k
}

// systemCall is how long threads slept in a system call.
func (r *recorder) systemCall(k kernelSleepKey, s kernelSleeps) recording.WaitsFor {
	d := recording.ThreadDetail{Syscall: syscallName(int(k.Syscall))}
	w := recording.WaitsFor{Ns: int64(s.Ns), Waits: int64(s.Waits)}
	if hostfs.TakesDescriptor(d.Syscall) {
		open := r.openFile(s.File, int(k.Fd))
		w.File, w.Device, w.Files, d.Other = open.File, open.Device, s.Files != 0, open.Other
	}
	if s.ByTgid != 0 && k.Syscall == unix.SYS_FUTEX {
		d.Syscall += fmt.Sprintf(", for a lock that %s[%d] released", comm(s.ByComm), s.ByTgid)
	}
	if s.ByTgid != 0 && k.Type == unix.S_IFIFO {
		d.By = &recording.Task{PID: int(s.ByTgid), Comm: comm(s.ByComm)}
	}
	w.Call = d.Call()
	return w
}

func peerText(k kernelPeerKey) string {
	if k.Family == unix.AF_UNIX {
		return recording.UnixPeer
	}
	return addrPort(k.Addr, k.Port).String()
}

// writeLibraryWaits records what the calls of a Go program waited for in its client library.
func (t *Tap) writeLibraryWaits(pid uint32) {
	since, hooked := t.goPrograms.since[pid]
	if !hooked {
		return
	}
	p, err := t.goPrograms.read(pid)
	if err != nil || p.Calls+p.Others == 0 {
		return
	}
	now := t.Clock.Now()
	t.Sink.Snapshot(recording.Snapshot{
		TimeNs: now, Source: recording.SourceTap, Subject: recording.ProcessPrefix + itoa(int(pid)),
		Name: recording.SnapshotLibrary, Body: recording.Detail(recording.LibraryWaits{
			Ns: now - since, Calls: int64(p.Calls), Others: int64(p.Others), CallsNs: int64(p.CallsNs),
			WaitedNs: int64(p.WaitedNs), WaitedMaxNs: int64(p.WaitedMax), Longer: int64(p.Waits),
		}),
	})
}

// addWaits adds the time of threads to that of their process.
func (t *Tap) addWaits(to *recording.ThreadWaits, threads int, ns uint64, clk kernelClocks, w kernelWaits) {
	to.Threads += threads
	to.Ns += int64(ns)
	to.RunQueueNs += int64(clk.Ns[runnable])
	to.ThrottledNs += int64(clk.Ns[throttled])
	to.FrozenNs += int64(clk.Ns[frozen])
	to.BlockedNs += int64(clk.Ns[blocked])
	to.RedisNs += int64(w.Ns[kernelReasonFOR_REDIS])
	to.LoopNs += int64(w.Ns[kernelReasonFOR_LOOP])
	to.DialNs += int64(w.Ns[kernelReasonFOR_DIAL])
	to.LockNs += int64(w.Ns[kernelReasonFOR_LOCK])
	to.TimerNs += int64(w.Ns[kernelReasonFOR_TIMER])
	to.EventsNs += int64(w.Ns[kernelReasonFOR_EVENTS])
	to.OthersNs += int64(w.Ns[kernelReasonFOR_OTHERS])
	to.PeersNs += int64(w.Ns[kernelReasonFOR_PEERS])
	to.Polls += int64(w.Polls)
	to.PollsNs += int64(w.PollsNs)
	to.Stalls += int64(w.Stalls)
	to.StallsNs += int64(w.StallsNs)
	to.StallMax = max(to.StallMax, int64(w.StallMax))
	if w.Polls > 0 {
		to.PollOp = cmp.Or(t.opOf(uint16(w.PollOp)).name, to.PollOp)
	}
}
