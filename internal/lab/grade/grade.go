// Package grade makes incidents, asks a doctor about each, and compares the verdict with the truth.
package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/incident"
	"slowpath/internal/lab/servers"
)

// Doctor asks for the verdict on a target. The real one is a process of its own, so that the lab's load does not weigh
// on it.
type Doctor func(ctx context.Context, args []string) (cause.Diagnosis, error)

// Process is the doctor that runs an executable of slowpath.
func Process(executable string) Doctor {
	return func(ctx context.Context, args []string) (cause.Diagnosis, error) {
		var d cause.Diagnosis
		var out, errOut bytes.Buffer
		c := exec.CommandContext(ctx, executable, append([]string{"doctor", "--json"}, args...)...)
		c.Stdout, c.Stderr = &out, &errOut
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
			return d, fmt.Errorf("doctor: %w: %s", err, bytes.TrimSpace(errOut.Bytes()))
		}
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			return d, fmt.Errorf("doctor printed no diagnosis: %w", err)
		}
		return d, nil
	}
}

// Result is one graded run.
type Result struct {
	Incident   string          `json:"incident"`
	Truth      string          `json:"truth"`
	Server     string          `json:"server"`
	Got        string          `json:"got"`  // first finding's cause, or the verdict where there are no findings
	Rank       int             `json:"rank"` // place of the truth among the findings, from 1; 0 where it was not named
	Confidence float64         `json:"confidence"`
	Share      float64         `json:"excess_share"`
	Excess     cause.Excess    `json:"excess"` // of the slow calls; nothing for a healthy load, which is to have none
	Seconds    float64         `json:"seconds"`
	Others     []string        `json:"others"`            // causes of the further findings
	Skipped    string          `json:"skipped,omitempty"` // why this machine could not make it
	Error      string          `json:"error,omitempty"`
	Diagnosis  cause.Diagnosis `json:"-"`
}

// Right reports whether the first thing said was the truth.
func (r Result) Right() bool { return r.Skipped == "" && r.Error == "" && r.Got == r.Truth }

// One makes an incident, diagnoses it, and undoes it.
func One(ctx context.Context, in incident.Incident, server servers.Name, doctor Doctor, log io.Writer) (r Result) {
	start := time.Now()
	if in.Server != "" {
		server = in.Server
	}
	r = Result{Incident: in.ID, Truth: in.Cause, Server: string(server), Others: []string{}}
	defer func() { r.Seconds = time.Since(start).Seconds() }()
	l, err := incident.New(server, log)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil && r.Error == "" {
			r.Error = "cleaning up: " + err.Error()
		}
	}()
	scene, err := in.Make(ctx, l)
	if errors.Is(err, fault.ErrCannot) {
		r.Skipped = err.Error()
		return r
	}
	if err != nil {
		r.Error = "making the incident: " + err.Error()
		return r
	}
	watch := in.Watch
	if watch == 0 {
		watch = incident.DefaultWatch
	}
	d, err := doctor(ctx, append([]string{scene.Target, "--for", watch.String()}, slices.Concat(scene.Args,
		in.Args)...))
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.judge(d)
	return r
}

func (r *Result) judge(d cause.Diagnosis) {
	r.Diagnosis = d
	r.Got = d.Verdict
	if r.Truth != incident.HealthyCause {
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
		}
	}
	if r.Truth == incident.HealthyCause && d.Verdict == cause.Healthy {
		r.Rank = 1
	}
}

// Summary is a whole grading.
type Summary struct {
	Schema       string                    `json:"schema"`
	Results      []Result                  `json:"results"`
	Named        int                       `json:"named_first"` // incidents whose cause was named first
	Incidents    int                       `json:"incidents"`
	Healthy      int                       `json:"healthy_kept"` // healthy loads that were called healthy
	HealthyTotal int                       `json:"healthy"`
	Skipped      int                       `json:"skipped"`
	Confusion    map[string]map[string]int `json:"confusion"` // truth → said → count
	Unexplained  Unexplained               `json:"unexplained"`
}

// Schema names the JSON of a Summary.
const Schema = "slowpath.grade/v1"

// Sum adds up results.
func Sum(rs []Result) Summary {
	s := Summary{Schema: Schema, Results: rs, Confusion: map[string]map[string]int{}}
	for _, r := range rs {
		if r.Skipped != "" {
			s.Skipped++
			continue
		}
		if r.Truth == incident.HealthyCause {
			s.HealthyTotal++
			if r.Right() {
				s.Healthy++
			}
		} else {
			s.Incidents++
			if r.Right() {
				s.Named++
			}
		}
		said := r.Got
		if r.Error != "" {
			said = "error"
		}
		if s.Confusion[r.Truth] == nil {
			s.Confusion[r.Truth] = map[string]int{}
		}
		s.Confusion[r.Truth][said]++
	}
	s.Unexplained = unexplainedOf(rs)
	return s
}

// Passed reports whether all that could be made was named rightly.
func (s Summary) Passed() bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool { return r.Skipped == "" && !r.Right() })
}
