package watch

import (
	"context"

	"slowpath/internal/profile"
	"slowpath/internal/recording"
)

// openProfiles asks the applications that the user named whether they can be profiled. What was asked for by name and is not there ends the
// watch before it begins: its address is wrong.
func openProfiles(ctx context.Context, o Options, sink recording.ProfileSink) (*profile.Source, error) {
	if len(o.Profiles) == 0 {
		return nil, nil
	}
	o.Progress("connecting to the applications that are to be profiled")
	ctx, cancel := context.WithTimeout(ctx, max(o.Timeout, DefaultTimeout))
	defer cancel()
	return profile.Open(ctx, profile.Options{Targets: o.Profiles, For: o.For, Clock: o.Clock, Sink: sink})
}

// describeProfiles says whether the source took part. One that nobody asked for is not listed.
func (r *run) describeProfiles() {
	if r.profiles == nil {
		return
	}
	r.status(recording.SourceProfile, true, "")
	if r.Frames != "" {
		r.sink.Snapshot(recording.Snapshot{TimeNs: r.Clock.Now(), Source: recording.SourceProfile, Subject: recording.SubjectSelf,
			Name: recording.SnapshotFrames, Body: r.Frames})
	}
}
