package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"slowpath/internal/lab/random"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/outfile"
)

// Maker makes incidents into a set.
type Maker struct {
	Set
	Exe     string       // of slowpath
	Server  servers.Name // draws this version only; empty: any
	Capture bool         // with packets
	Log     io.Writer
}

// Make makes the incident of a seed, or finds that the set has it. It is whole or not there.
func (m Maker) Make(ctx context.Context, seed uint64) (random.Run, error) {
	id := strconv.FormatUint(seed, 10)
	if r, err := m.Truth(id); err == nil {
		return r, nil
	}
	for _, dir := range []string{m.path(id), m.path(truthDir)} {
		if err := outfile.Directory(dir); err != nil {
			return random.Run{}, err
		}
	}
	file := m.path(id, recordingFile)
	packets := m.path(id, captureFile)
	for _, old := range []string{file, file + "-wal", file + "-shm", packets} { // of an incident that was interrupted
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return random.Run{}, err
		}
	}
	in := Incident{Schema: IncidentSchema, ID: id}
	run := random.Maker{
		Record: m.record(&in), Log: m.Log,
		Observe: func(ctx context.Context, when random.When, st random.Seen) error {
			in.Address, in.Target = st.Server, st.Target
			s := server{st.Server, st.TLS}
			if when == random.Before {
				if err := s.prepare(ctx); err != nil {
					return err
				}
			}
			return s.keep(ctx, m.path(id, string(when)+".txt"))
		},
	}.Make(ctx, seed, m.Server, file)
	if run.Failed() || ctx.Err() != nil {
		return run, os.RemoveAll(m.path(id))
	}
	in.Server = string(run.Drawn.Server)
	for _, c := range run.Drawn.Callers {
		in.Callers = append(in.Callers, string(c.Program))
	}
	files, err := os.ReadDir(m.path(id))
	if err != nil {
		return run, err
	}
	for _, f := range files {
		in.Files = append(in.Files, f.Name())
	}
	if err := m.write(m.path(id, incidentFile), in); err != nil {
		return run, err
	}
	return run, m.write(m.path(truthDir, id+".json"), run)
}

// record records an incident, and its packets where they are wanted.
func (m Maker) record(in *Incident) random.Recorder {
	record := random.RecordProcess(m.Exe)
	if !m.Capture {
		return record
	}
	return func(ctx context.Context, target []string, watch time.Duration, file string) error {
		args := []string{"capture", "--for", watch.String(), "-o", m.path(in.ID, captureFile), in.Target}
		capture := exec.CommandContext(ctx, m.Exe, args...)
		var said bytes.Buffer
		capture.Stderr = &said
		if err := capture.Start(); err != nil {
			return err
		}
		err := record(ctx, target, watch, file)
		if ended := capture.Wait(); err == nil && ended != nil {
			err = fmt.Errorf("capture: %w: %s", ended, bytes.TrimSpace(said.Bytes()))
		}
		return err
	}
}

// Seconds is about how long an incident takes to make.
const Seconds = float64(24*0.75) + float64(scenario.DefaultWatch/time.Second)
