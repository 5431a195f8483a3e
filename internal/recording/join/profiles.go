package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// addProfiles adds the profiles of applications on the client's host. A subject that the server's recording has is
// another application there (127.0.0.1:6060 of another host, another process of the same number): the added one gets
// a suffix, "pprof:127.0.0.1:6060#2".
func (g clientRows) addProfiles() {
	names := map[string]string{}
	subject := func(of string) string {
		if of != recording.SubjectSelf && names[of] == "" {
			names[of] = g.freeSubject(of)
		}
		return cmp.Or(names[of], of)
	}
	shift := func(at int64) int64 { return at + g.clocks.shift(at) }
	profiles := g.shiftedProfiles(subject, shift)
	g.addApplications(subject, shift)
	for _, e := range g.client.Events {
		if e.Source == recording.SourceProfile && e.Kind == recording.KindBlindSpot {
			e.Subject, e.TimeNs = subject(e.Subject), shift(e.TimeNs)
			g.server.Event(e)
		}
	}
	for _, p := range profiles { // at the end, so that their subjects do not count as used
		g.server.Profile(p)
	}
	g.addProfileSamples(subject, shift)
	if len(profiles) > 0 {
		status := recording.SourceStatus{Name: recording.SourceProfile, Used: true}
		g.server.SetMeta(recording.MetaSource+recording.SourceProfile, recording.Detail(status))
	}
}

// shiftedProfiles are the client's profiles in the server's time. Samples of the CPU have times of their own: they are
// left out if the offset of the clocks is not known.
func (g clientRows) shiftedProfiles(subject func(string) string, shift func(int64) int64) (out []recording.Profile) {
	for _, p := range g.client.Profiles {
		if recording.SampledOnHost(p.Kind) {
			if g.clocks.unusable {
				continue
			}
			body, err := stacks.Move(p.Pprof, shift)
			if err != nil {
				continue // truncated, not readable
			}
			p.Pprof = body
		}
		p.Subject, p.TimeNs = subject(p.Subject), shift(p.TimeNs)
		out = append(out, p)
	}
	return out
}

// addApplications adds the snapshots of the profile source.
func (g clientRows) addApplications(subject func(string) string, shift func(int64) int64) {
	for _, s := range g.client.Snapshots {
		if s.Source != recording.SourceProfile {
			continue
		}
		if s.Name == recording.SnapshotFrames {
			g.addFrames(s)
			continue
		}
		s.Subject, s.TimeNs = subject(s.Subject), shift(s.TimeNs)
		what, ok := recording.BodyOf[recording.Profiled](s)
		if s.Name == recording.SnapshotApplication && ok && what.Node != "" {
			what.Node = g.nodeName(what.Node)
			s.Body = recording.Detail(what)
		}
		g.server.Snapshot(s)
	}
}

// addProfileSamples adds the samples of the profile source.
func (g clientRows) addProfileSamples(subject func(string) string, shift func(int64) int64) {
	for _, of := range g.client.Subjects(recording.SourceProfile, "") {
		if of == recording.SubjectSelf {
			continue
		}
		for _, name := range g.client.Names(recording.SourceProfile, of, "") {
			for _, p := range g.client.Series(recording.SourceProfile, of, name) {
				g.server.Sample(recording.Sample{
					TimeNs: shift(p.TimeNs), Source: recording.SourceProfile,
					Subject: subject(of), Name: name, Value: p.Value,
				})
			}
		}
	}
}

// freeSubject is a subject that no other application of the server's recording has.
func (g clientRows) freeSubject(subject string) string {
	for n, name := 2, subject; ; n, name = n+1, fmt.Sprintf("%s#%d", subject, n) {
		used := func(of string) bool { return of == name }
		if !g.usedSubjects[name] && !slices.ContainsFunc(g.server.Profiles,
			func(p recording.Profile) bool { return used(p.Subject) }) &&
			!slices.ContainsFunc(g.server.Snapshots,
				func(s recording.Snapshot) bool { return s.Source == recording.SourceProfile && used(s.Subject) }) {
			return name
		}
	}
}

// addFrames adds the user's own table of frames to that of the server's recording.
func (g clientRows) addFrames(s recording.Snapshot) {
	if have, ok := g.server.SnapshotOf(recording.SourceProfile, recording.SubjectSelf, recording.SnapshotFrames); ok {
		if strings.Contains(have.Body, s.Body) {
			return
		}
		s.Body = have.Body + "\n" + s.Body
		s.TimeNs = have.TimeNs
		g.server.Snapshots = slices.DeleteFunc(g.server.Snapshots, func(o recording.Snapshot) bool {
			return o.Source == recording.SourceProfile && o.Name == recording.SnapshotFrames
		})
	}
	g.server.Snapshot(s)
}
