//go:build linux

package tap

import (
	"cmp"
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

// programsPerSecond bounds how many processes are looked at: each costs about 50 µs. Of those beyond it what the kernel
// told is known.
const programsPerSecond = 64

// process is one by its number.
func (r *recorder) process(pid uint32) process {
	return process{int(pid), r.names[pid], r.programs.names[pid]}
}

// program takes what the kernel says of a process that connects to a server: it may have ended by now.
func (r *recorder) program(e *kernelProgramEvent) {
	p := hostfs.Program{Comm: comm(e.Comm), Name: hostfs.ProgramName(comm(e.Comm), e.Args[:])}
	r.learnProgram(e.Tgid, p, int(e.Uid))
}

// readProgram reads what a process runs that has connected before the watch.
func (r *recorder) readProgram(pid uint32) {
	if r.Files != nil && r.programs.names[pid] == "" {
		r.learnProgram(pid, hostfs.Program{}, 0)
	}
}

// learnProgram records what a process runs, as /proc has it, or else as the kernel told it.
func (r *recorder) learnProgram(pid uint32, told hostfs.Program, uid int) {
	if now := r.Clock.Now(); now-r.programs.read >= 1e9 {
		r.programs.read, r.room = now, programsPerSecond
	}
	p, ok := told, false
	read := r.room > 0
	if read {
		r.room--
		if p, ok = hostfs.ProgramOf(r.Files, int(pid)); !ok {
			p = told
			p.User = hostfs.UserName(r.Files, uid)
		}
	}
	if p.Name = cmp.Or(p.Name, told.Name, p.Comm, told.Comm); p.Name == "" || r.programs.names[pid] == p.Name {
		return
	}
	r.programs.names[pid] = p.Name
	if read && r.onCaller != nil {
		r.onCaller(pid)
	}
	r.Sink.Snapshot(recording.Snapshot{
		TimeNs: r.Clock.Now(), Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + strconv.Itoa(int(pid)), Name: recording.SnapshotProgram,
		Body: recording.Detail(recording.Program(p)),
	})
}
