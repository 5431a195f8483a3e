package report

import (
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

func TestThreadsOfCallers(t *testing.T) {
	for _, tt := range []struct {
		of   verdict.CallerTime
		want string
	}{
		{verdict.CallerTime{Source: recording.SourceTap, Threads: 4}, "4 threads"},
		{
			verdict.CallerTime{Source: recording.SourceHost, Threads: 1},
			"1 thread seen to call or connect, by samples",
		},
		{
			verdict.CallerTime{Source: recording.SourceHost, Threads: 2, OtherThreads: 30},
			"2 threads seen to call or connect, by samples (not of 30 others)",
		},
		{
			verdict.CallerTime{Source: recording.SourceHost, Threads: 3, OtherThreads: 1, Assumed: true},
			"3 threads that ran (none was seen to wait for a reply), by samples",
		},
	} {
		if got := threadsSaid(tt.of); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.of, got, tt.want)
		}
	}
}
