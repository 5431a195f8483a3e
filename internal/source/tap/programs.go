//go:build linux

package tap

import (
	"strconv"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// programs are what processes run that have the clients' ends of connections.
type programs struct {
	names map[uint32]string // by process; as long as it is kept
	read  int64             // when the time of room began,
	room  int               // and how many may still be read in it
}

// programsPerSecond bounds how many processes are looked at: each costs 50 µs. Of those beyond it the name of the thread
// is known.
const programsPerSecond = 64

// process is one by its number.
func (r *recorder) process(pid uint32) process {
	return process{int(pid), r.names[pid], r.programs.names[pid]}
}

// readProgram reads what a process runs that has no connection yet, and records it where it is new: a process number may
// be used again.
func (r *recorder) readProgram(pid uint32) {
	if r.Files == nil || r.conns[pid] > 0 && r.programs.names[pid] != "" {
		return
	}
	if now := r.Clock.Now(); now-r.programs.read >= 1e9 {
		r.programs.read, r.room = now, programsPerSecond
	}
	if r.room == 0 {
		return
	}
	r.room--
	p, ok := hostfs.ProgramOf(r.Files, int(pid))
	if !ok || r.programs.names[pid] == p.Name {
		return
	}
	r.programs.names[pid] = p.Name
	r.Sink.Snapshot(recording.Snapshot{
		TimeNs: r.Clock.Now(), Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + strconv.Itoa(int(pid)), Name: recording.SnapshotProgram,
		Body: recording.Detail(recording.Program(p)),
	})
}
