// Package grade makes scenarios, lets doctor diagnose each, and compares the first finding with the truth.
package grade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Result is one graded run.
type Result struct {
	Scenario   string            `json:"incident"`
	Truth      string            `json:"truth"`
	Server     string            `json:"server"`
	Got        string            `json:"got"`  // cause of the first finding, or the verdict if there is none
	Rank       int               `json:"rank"` // number of the finding that is the truth, from 1; 0 if none is
	Confidence float64           `json:"confidence"`
	Share      float64           `json:"excess_share"`
	Excess     verdict.Excess    `json:"excess"` // of the slow calls; empty for a healthy load
	Seconds    float64           `json:"seconds"`
	Others     []string          `json:"others"`            // causes of the further findings
	Skipped    string            `json:"skipped,omitempty"` // why this machine cannot make it
	Error      string            `json:"error,omitempty"`
	Ending     string            `json:"ending,omitempty"` // what went wrong after the verdict, which stands
	Diagnosis  verdict.Diagnosis `json:"-"`
	by         string            // scenario.Scenario.By
}

// Right reports whether the first finding, or the verdict without findings, is the truth, or that by which it is made.
func (r Result) Right() bool { return r.Skipped == "" && r.Error == "" && r.Rank == 1 }

// err is what spoiled a run; nil where nothing did.
func (r Result) err() error {
	switch {
	case r.Skipped != "":
		return errors.New(r.Skipped)
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// Run makes a scenario, lets the doctor diagnose it, and ends it.
func Run(ctx context.Context, sc scenario.Scenario, server servers.Name, doctor Doctor, log io.Writer) Result {
	return made(ctx, sc, server, doctor, log, nil, nil)
}

// made is Run of a scenario with a step carried out (nil: with none). then, where it is not nil, is called with the
// diagnosis while the scenario goes on.
func made(ctx context.Context, sc scenario.Scenario, server servers.Name, doctor Doctor, log io.Writer,
	fix *remedy.Step, then func(verdict.Diagnosis, again) error,
) (r Result) {
	start := time.Now()
	if sc.Server != "" {
		server = sc.Server
	}
	r = Result{Scenario: sc.ID, Truth: sc.Cause, by: sc.By, Server: string(server), Others: []string{}}
	defer func() { r.Seconds = time.Since(start).Seconds() }()
	l, err := scenario.New(server, log)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		step.Say(ctx, "undoing it")
		r.closed(l.Close(ctx))
	}()
	if fix != nil {
		l.Fix(*fix)
	}
	step.Say(ctx, "making the scenario")
	scene, err := sc.Make(ctx, l)
	switch {
	case errors.Is(err, fault.ErrCannot):
		r.Skipped = err.Error()
		return r
	case err != nil:
		r.Error = "making the scenario: " + err.Error()
		return r
	case fix != nil && !l.CarriedOut():
		r.Error = fmt.Sprintf("scenario %s does not carry out step %s", sc.ID, fix.ID)
		return r
	}
	watch := sc.Watch
	if watch == 0 {
		watch = scenario.DefaultWatch
	}
	watched := func() (verdict.Diagnosis, error) {
		step.Say(ctx, "doctor watches %s for %v, and judges", scene.Target, watch)
		d, err := doctor(ctx, append([]string{scene.Target, "--for", watch.String()}, slices.Concat(scene.Args,
			sc.Args)...))
		if err == nil {
			err = ctx.Err() // what was seen of a watch that was ended early is no result
		}
		return d, err
	}
	d, err := watched()
	if err == nil {
		r.judge(d)
	}
	if err == nil && then != nil {
		err = then(d, watched)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// closed notes what went wrong at the end of the scenario. It spoils the run only if the scenario did not take place.
func (r *Result) closed(err error) {
	switch {
	case err == nil || r.Error != "":
	case errors.Is(err, scenario.ErrNotMade):
		r.Error = err.Error()
	default:
		r.Ending = err.Error()
	}
}

func (r *Result) judge(d verdict.Diagnosis) {
	r.Diagnosis = d
	r.Got = d.Verdict
	if r.Truth != scenario.HealthyCause {
		r.Excess = d.Excess
	}
	for i, f := range d.Findings {
		if i == 0 {
			r.Got, r.Confidence, r.Share = f.Cause, f.Confidence, f.ExcessShare
		} else {
			r.Others = append(r.Others, f.Cause)
		}
		if f.Cause == r.Truth {
			r.Rank = i + 1
			if f.Because != "" && f.Because == r.by && r.Got == r.by {
				r.Rank = 1
			}
		}
	}
	if r.Truth == scenario.HealthyCause && d.Verdict == verdict.Healthy {
		r.Rank = 1
	}
}
