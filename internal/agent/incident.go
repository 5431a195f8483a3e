package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/agent/ring"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

func newEpisodes(a *Agent) *episodes {
	s := a.settings.Load()
	e := &episodes{triggers: newTriggers(a.view.Threshold, s.Goals, s.Off), limits: *s}
	e.keep = &recorder{Agent: a, jobs: make(chan func(), maxJobs)}
	return e
}

// maxJobs are waiting to be done; there are two judgements of an incident, and an update each ten seconds.
const maxJobs = 64

// Seconds that are read again, and how often those of slowpath's own calls.
const (
	tapLate      = 2
	ownLate      = 15
	ownLateEvery = 3
)

// judgeSeconds looks at the triggers each second until ctx ends.
func (a *Agent) judgeSeconds(ctx context.Context) {
	r := a.episodes.keep.(*recorder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for job := range r.jobs {
			job()
		}
	}()
	r.judgeKilled()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last, ticks := a.view.Complete(), 0; ; ticks++ {
		select {
		case <-ctx.Done():
			a.episodes.stop()
			close(r.jobs)
			<-done
			return
		case <-tick.C:
		}
		a.ticked.Store(time.Now().Unix())
		now := a.view.Complete()
		if now <= last {
			continue
		}
		// The probe writes a second when its next call has ended: at a low rate it comes late.
		again := int64(tapLate)
		if ticks%ownLateEvery == 0 {
			again = ownLate
		}
		a.episodes.take(a.own.without(a.view.Seconds(min(last, now-again), now)))
		a.episodes.step(now)
		last = now
	}
}

// mostKilled incidents without a verdict are judged at the begin of an agent; there is one at most, unless judging
// itself fails.
const mostKilled = 3

// judgeKilled judges incidents that an agent before this one could not: it was killed, and their recording is there, or
// the ring still has their time.
func (r *recorder) judgeKilled() {
	const early = 2 * time.Second // incidents begin with whole seconds: one may begin before its watch has a row
	kept, s := r.ring.Status(), r.settings.Load()
	from := kept.From.Add(-early)
	left := mostKilled
	for _, in := range r.store.List(incidents.Query{}) {
		if in.State != incidents.StateFailed || in.RecordingBytes == 0 && in.Start.Before(from) ||
			in.Start.After(r.since) || left == 0 {
			continue
		}
		left--
		begin := in.Start.Unix()
		to := min(begin+seconds(s.Longest), r.since.Unix())
		if in.RecordingBytes > 0 { // nothing replaces it
			r.log.OfIncident(in.ID, "has no verdict yet: its recording is judged")
			r.do(func() { r.judgeKept(in) })
			continue
		}
		r.log.OfIncident(in.ID, "has no verdict yet: it is judged from the ring")
		end := in.End.Unix()
		if in.CutOff { // it went on until the agent was killed
			end = min(kept.To.Unix(), to)
		}
		r.judge(in.ID, in.Nodes, span{begin, to}, max(end, begin+1), true, func(found) {})
	}
}

// judgeKept judges the recording that an incident has. A page that is there stays.
func (r *recorder) judgeKept(in incidents.Incident) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime)
	defer cancel()
	began := time.Now()
	kept, err := r.store.Folder(in.ID)
	if err == nil {
		defer kept.Close()
		o := judge.Options{Folder: kept, Recording: incidents.RecordingFile, Timeout: judgeTime}
		if kept.Size(incidents.ReportFile) == 0 {
			o.HTML = incidents.ReportFile
		}
		var diagnosis []byte
		if diagnosis, err = r.o.Judge(ctx, o); err == nil {
			err = r.kept(r.store.Finish(in.ID, diagnosis))
		}
	}
	if err == nil {
		_, err = r.judged(in.ID, in, in.RecordingBytes, true, time.Since(began))
	}
	if err != nil {
		r.fail(in.ID, err)
	}
}

// recorder keeps incidents in the store. Its jobs are done one after the other.
type recorder struct {
	*Agent
	jobs chan func()
}

// do queues a job. It is false where too many wait.
func (r *recorder) do(job func()) bool {
	select {
	case r.jobs <- job:
		return true
	default:
		return false
	}
}

func (r *recorder) begin(f Firing, nodes []string, start int64) (string, error) {
	target := nodes
	if len(target) == 0 {
		target = r.watchedNow()
	}
	in, err := r.store.Begin(f.Text, strings.Join(target, ", "), time.Unix(start, 0).UTC())
	if err != nil {
		return "", r.cannotKeep(err)
	}
	r.log.OfIncident(in.ID, "begins: %s", f.Text)
	r.o.Changed(in)
	return in.ID, nil
}

// watchedNow are the servers that are watched.
func (a *Agent) watchedNow() (out []string) {
	for _, s := range a.servers.all() {
		if s.Watched {
			out = append(out, s.Address)
		}
	}
	if len(out) == 0 {
		return a.view.Nodes()
	}
	return out
}

func (r *recorder) extend(id string, end, slow, failed int64) {
	r.do(func() {
		in, ok := r.store.Get(id)
		if !ok {
			return
		}
		in.SlowCalls, in.FailedCalls = max(in.SlowCalls, slow), max(in.FailedCalls, failed)
		if in.State != incidents.StateWatching {
			in.End = time.Unix(end, 0).UTC()
		}
		r.keepState(in)
	})
}

// incidentsProblem is that of incidents that cannot be kept. It is over when all can be written: see checkFiles.
const incidentsProblem = "incidents"

// cannotKeep says in health that an incident cannot be kept.
func (a *Agent) cannotKeep(err error) error {
	err = fmt.Errorf("an incident cannot be kept: %w", err)
	a.problem(incidentsProblem, err.Error())
	return err
}

// kept takes the error of a change of an incident: nil, too, where the change is kept in memory until it is written.
func (r *recorder) kept(err error) error {
	if err != nil {
		_ = r.cannotKeep(err)
	}
	if errors.Is(err, incidents.ErrUnwritten) {
		return nil
	}
	return err
}

func (r *recorder) keepState(in incidents.Incident) { _ = r.kept(r.store.Update(in)) }

func (r *recorder) judge(id string, nodes []string, s span, end int64, final bool, judged func(found)) {
	job := func() {
		in, f, err := r.verdict(id, nodes, r.cutOf(nodes, s, end), end, final)
		judged(f)
		if err != nil && final {
			r.fail(in.ID, err)
		}
	}
	if !r.do(job) {
		go func() {
			judged(found{})
			if final {
				r.fail(id, errors.New("too much waits to be judged"))
			}
		}()
	}
}

func (r *recorder) look(id string, nodes []string, s span, seen func(found)) {
	job := func() {
		f, err := r.lookAt(r.cutOf(nodes, s, s.to))
		if err != nil {
			r.log.OfIncident(id, "goes on, and was not judged again: %v", err)
		}
		seen(f)
	}
	if !r.do(job) {
		go seen(found{})
	}
}

// lookAt judges a cut of the ring, and keeps nothing.
func (r *recorder) lookAt(c ring.Cut) (found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime)
	defer cancel()
	const name = "look.slowpath"
	if err := r.saveRecording(ctx, r.Temp(), name, c); err != nil {
		return found{}, err
	}
	defer r.Temp().Remove(name)
	diagnosis, err := r.o.Judge(ctx, judge.Options{Folder: r.Temp(), Recording: name, Timeout: judgeTime})
	if err != nil {
		return found{}, err
	}
	return foundIn(diagnosis), nil
}

// cutOf is what is judged of calls that are slow or failed in a time, which ended at end: their own time, at least as
// long as that of a trigger, and their own nodes. It begins a second earlier, as the tap counts calls once a second.
func (r *recorder) cutOf(nodes []string, s span, end int64) ring.Cut {
	from, to := ownTime(s, end)
	return ring.Cut{
		From: time.Unix(from-1, 0), To: time.Unix(to, 0), Before: r.settings.Load().Before,
		Nodes: r.systemOf(nodes),
	}
}

func ownTime(s span, end int64) (from, to int64) {
	to = min(max(end+1, s.from+usersWindow), s.to)
	return min(s.from, to-firstVerdict), to
}

// systemOf are nodes and those that belong to them: the other nodes of their cluster, and all where one is a proxy,
// whose calls go on to others. No nodes are all.
func (r *recorder) systemOf(nodes []string) []string {
	watched := r.watchedNow()
	isCluster := func(node string) bool {
		enabled, _, _ := r.view.LastSample(series.ClusterEnabled, node)
		return enabled > 0
	}
	isProxy := func(node string) bool {
		_, ok := r.view.LastSnapshot(node, recording.SnapshotProxy)
		return ok
	}
	switch {
	case len(nodes) == 0 || slices.ContainsFunc(watched, isProxy):
		return nil
	case !slices.ContainsFunc(nodes, isCluster):
		return nodes
	}
	out := slices.Clone(nodes)
	for _, n := range watched {
		if isCluster(n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// foundIn reads what a document slowpath.diagnosis/v1 found.
func foundIn(diagnosis []byte) (f found) {
	var d struct {
		Verdict  string
		Findings []struct {
			Cause      string
			Confidence float64
		}
	}
	if json.Unmarshal(diagnosis, &d) != nil || d.Verdict != verdict.Findings || len(d.Findings) == 0 {
		return found{}
	}
	for _, one := range d.Findings {
		f.causes = append(f.causes, one.Cause)
	}
	f.sure = d.Findings[0].Confidence >= sure
	return f
}

// sure is from when on a verdict names a cause without "Probably".
const sure = 0.6

func (r *recorder) fail(id string, why error) {
	r.log.OfIncident(id, "has no verdict: %v", why)
	_ = r.kept(r.store.Fail(id, why.Error()))
	if in, ok := r.store.Get(id); ok {
		r.o.Changed(in)
	}
}

// judgeTime bounds a judgement, also the last one of an agent that stops: systemd kills it 90 s after SIGTERM.
const judgeTime = 40 * time.Second

// verdict saves the time of an incident as its recording, and judges it.
func (r *recorder) verdict(id string, nodes []string, c ring.Cut, end int64, final bool) (incidents.Incident, found,
	error,
) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime)
	defer cancel()
	began := time.Now()
	in, ok := r.store.Get(id)
	if !ok {
		return incidents.Incident{ID: id}, found{}, errors.New("it was removed")
	}
	if len(nodes) > 0 {
		in.Target = strings.Join(nodes, ", ")
	}
	if final {
		in.State = incidents.StateJudging
		in.End = time.Unix(end, 0).UTC()
	}
	r.keepState(in)
	kept, err := r.store.Folder(id)
	if err != nil {
		return in, found{}, err
	}
	defer kept.Close()
	if err := r.saveRecording(ctx, kept, incidents.RecordingFile, c); err != nil {
		return in, found{}, err
	}
	diagnosis, err := r.o.Judge(ctx, judge.Options{
		Folder: kept, Recording: incidents.RecordingFile, HTML: incidents.ReportFile, Timeout: judgeTime,
	})
	if err != nil {
		return in, found{}, fmt.Errorf("judging it failed: %w; its recording is kept: slowpath doctor %s", err,
			kept.Path(incidents.RecordingFile))
	}
	if err := r.kept(r.store.Finish(id, diagnosis)); err != nil {
		return in, found{}, err
	}
	in, err = r.judged(id, in, kept.Size(incidents.RecordingFile), final, time.Since(began))
	return in, foundIn(diagnosis), err
}

// saveRecording writes the recording of a time, and replaces one of that name.
func (r *recorder) saveRecording(ctx context.Context, in *folder.Folder, name string, c ring.Cut) error {
	const suffix = ".new"
	_ = in.Remove(name + suffix)
	err := r.ring.SaveCut(ctx, c, in, name+suffix)
	if errors.Is(err, ring.ErrNothing) {
		return fmt.Errorf("%w: nothing was watched then", err)
	}
	if err == nil {
		err = in.Rename(name+suffix, name)
	}
	if err != nil {
		_ = in.Remove(name + suffix)
		return fmt.Errorf("its recording cannot be written: %w", err)
	}
	return nil
}

// judged keeps what is known beside the diagnosis, and tells of it.
func (r *recorder) judged(id string, before incidents.Incident, bytes int64, final bool, took time.Duration,
) (incidents.Incident, error) {
	in, ok := r.store.Get(id)
	if !ok {
		return in, errors.New("it was removed")
	}
	in.RecordingBytes, in.Start, in.Target = bytes, before.Start, before.Target
	in.SlowCalls, in.FailedCalls = max(in.SlowCalls, before.SlowCalls), max(in.FailedCalls, before.FailedCalls)
	in.State, in.End = incidents.StateJudged, before.End
	which := "verdict"
	if !final {
		in.State, in.End, which = incidents.StateWatching, time.Time{}, "first verdict"
	}
	r.keepState(in)
	cause := in.Cause
	if cause == "" {
		cause = in.Verdict
	}
	r.log.OfIncident(id, "%s after %.1f s: %s: %s", which, took.Seconds(), cause, in.Summary)
	r.o.Changed(in)
	return in, nil
}
