package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/agent/ring"
	"slowpath/internal/diagnose/verdict"
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

// judgeKilled judges incidents that an agent before this one could not: it was killed, and the ring still has their
// time.
func (r *recorder) judgeKilled() {
	const early = 2 * time.Second // incidents begin with whole seconds: one may begin before its watch has a row
	from, s := r.ring.Status().From.Add(-early), r.settings.Load()
	left := mostKilled
	for _, in := range r.store.List(incidents.Query{From: from}) {
		if in.State != incidents.StateFailed || in.Start.Before(from) || in.Start.After(r.since) || left == 0 {
			continue
		}
		left--
		begin := in.Start.Unix()
		to := min(begin+seconds(s.Longest), r.since.Unix())
		r.log.OfIncident(in.ID, "has no verdict yet: it is judged from the ring")
		r.judge(in.ID, begin-seconds(s.Before), to, max(in.End.Unix(), begin+1), true, func(string) {})
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

func (r *recorder) begin(f Firing, start int64) (string, error) {
	in, err := r.store.Begin(f.Text, strings.Join(r.watchedNow(), ", "), time.Unix(start, 0).UTC())
	if err != nil {
		err = fmt.Errorf("an incident cannot be kept: %w", err)
		r.problem("incidents", err.Error())
		return "", err
	}
	r.problem("incidents", "")
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

// keepState writes an incident. What fails is said once.
func (r *recorder) keepState(in incidents.Incident) {
	if err := r.store.Update(in); err != nil {
		r.problem("incidents", fmt.Sprintf("an incident cannot be kept: %v", err))
	}
}

func (r *recorder) judge(id string, from, to, end int64, final bool, judged func(cause string)) {
	job := func() {
		in, err := r.verdict(id, window{from, to, end}, final)
		judged(in.Cause)
		if err != nil && final {
			r.fail(id, err)
		}
	}
	if !r.do(job) {
		go judged("")
		r.log.Warn("the incident %s has no verdict yet: too much waits to be judged", id)
	}
}

func (r *recorder) fail(id string, why error) {
	r.log.OfIncident(id, "has no verdict: %v", why)
	if err := r.store.Fail(id, why.Error()); err != nil {
		r.problem("incidents", fmt.Sprintf("an incident cannot be kept: %v", err))
	}
	if in, ok := r.store.Get(id); ok {
		r.o.Changed(in)
	}
}

// judgeTime bounds a judgement, also the last one of an agent that stops: systemd kills it 90 s after SIGTERM.
const judgeTime = 40 * time.Second

// window is the time of a recording, in Unix seconds, and when the incident in it ended.
type window struct{ from, to, end int64 }

// verdict saves the time of an incident as its recording, and judges it.
func (r *recorder) verdict(id string, w window, final bool) (incidents.Incident, error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime)
	defer cancel()
	began := time.Now()
	in, ok := r.store.Get(id)
	if !ok {
		return in, errors.New("it was removed")
	}
	if final {
		in.State = incidents.StateJudging
		in.End = time.Unix(w.end, 0).UTC()
		r.keepState(in)
	}
	path, err := r.store.RecordingPath(id)
	if err != nil {
		return in, err
	}
	page, err := r.store.ReportPath(id)
	if err != nil {
		return in, err
	}
	if err := r.saveRecording(ctx, path, w.from, w.to); err != nil {
		return in, err
	}
	diagnosis, err := r.o.Judge(ctx, judge.Options{Recording: path, HTML: page, Timeout: judgeTime})
	if err != nil {
		return in, fmt.Errorf("judging it failed: %w; its recording is kept: slowpath doctor %s", err, path)
	}
	if from, to := w.own(in.Start.Unix()); from > w.from && isHealthy(diagnosis) {
		if shorter := r.shorterVerdict(ctx, id, path, page, from, to); shorter != nil {
			diagnosis = shorter
		}
	}
	if err := r.store.Finish(id, diagnosis); err != nil {
		return in, err
	}
	return r.judged(id, in, sizeOf(path), final, time.Since(began))
}

// own is the time of an incident whose first slow or failed call was at since: at least as long as that of a trigger.
func (w window) own(since int64) (from, to int64) {
	to = min(max(w.end, since+usersWindow), w.to)
	return min(since, to-usersWindow), to
}

// shorterVerdict judges the time of an incident alone: what is a pattern in its few seconds may be none in a recording
// that begins a minute before. Where it is not healthy, the recording and the page become those of this time, as a
// verdict has to be that of its recording. Otherwise it is nil.
func (r *recorder) shorterVerdict(ctx context.Context, id, path, page string, from, to int64) []byte {
	const suffix = ".shorter"
	defer func() {
		_ = os.Remove(path + suffix)
		_ = os.Remove(page + suffix)
	}()
	err := r.saveRecording(ctx, path+suffix, from, to)
	var diagnosis []byte
	if err == nil {
		o := judge.Options{Recording: path + suffix, HTML: page + suffix, Timeout: judgeTime}
		diagnosis, err = r.o.Judge(ctx, o)
	}
	if err != nil {
		r.log.OfIncident(id, "was not judged by its own time: %v; the verdict is that of %s", err, path)
		return nil
	}
	if isHealthy(diagnosis) {
		return nil
	}
	if err := errors.Join(os.Rename(path+suffix, path), os.Rename(page+suffix, page)); err != nil {
		r.problem("incidents", fmt.Sprintf("the files of an incident cannot be replaced: %v", err))
		return nil
	}
	return diagnosis
}

// isHealthy reports whether a document slowpath.diagnosis/v1 found nothing wrong.
func isHealthy(diagnosis []byte) bool {
	var d struct{ Verdict string }
	return json.Unmarshal(diagnosis, &d) == nil && d.Verdict == verdict.Healthy
}

// saveRecording writes the recording of a time, and replaces one at path.
func (r *recorder) saveRecording(ctx context.Context, path string, from, to int64) error {
	const suffix = ".new"
	_ = os.Remove(path + suffix)
	err := r.ring.Save(ctx, time.Unix(from, 0), time.Unix(to, 0), path+suffix)
	if errors.Is(err, ring.ErrNothing) {
		return fmt.Errorf("%w: nothing was watched then", err)
	}
	if err == nil {
		err = os.Rename(path+suffix, path)
	}
	if err != nil {
		_ = os.Remove(path + suffix)
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
	in.RecordingBytes, in.Start = bytes, before.Start
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
