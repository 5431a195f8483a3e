package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// hostCase builds small recordings for the causes of the server's host: 8 s, 50 calls per second of 0.2 ms, the main
// thread watched, and from second 1 on a stall of 60 ms every 100 ms.
type hostCase struct{ *recording.Recording }

const hostNode = "10.0.0.1:6379"

func newHostCase(stalls bool) hostCase {
	r := hostCase{recording.New()}
	r.SetMeta(recording.MetaTarget, hostNode)
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "8000000000")
	for i := range int64(400) {
		at := i * 20e6
		ns := int64(200e3)
		if phase := at % 100e6; stalls && at >= 1e9 && phase < 60e6 {
			ns += 60e6 - phase
		}
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: hostNode, IntendedNs: at,
			StartNs: at, EndNs: at + ns,
		})
	}
	return r
}

func (r hostCase) sample(subject, name string, from, to float64) hostCase {
	r.Sample(recording.Sample{TimeNs: 0, Source: recording.SourceHost, Subject: subject, Name: name, Value: from})
	r.Sample(recording.Sample{TimeNs: 8e9, Source: recording.SourceHost, Subject: subject, Name: name, Value: to})
	return r
}

// stalled: during each stall the main thread was in a state.
func (r hostCase) stalled(kind string, d recording.ThreadDetail) hostCase {
	d.Share = 1
	for at := int64(1e9); at < 8e9; at += 100e6 {
		r.Event(recording.Event{
			TimeNs: at, DurationNs: 60e6, Source: recording.SourceHost, Subject: hostNode,
			Kind: kind, Detail: recording.Detail(d),
		})
	}
	return r
}

func (r hostCase) threads(runSeconds, delaySeconds float64) hostCase {
	return r.sample(hostNode, "main.run_ns", 0, runSeconds*1e9).sample(hostNode, "main.delay_ns", 0, delaySeconds*1e9)
}

func (r hostCase) cgroup(throttled float64) hostCase {
	r.Snapshot(recording.Snapshot{
		Source: recording.SourceHost, Subject: hostNode, Name: "cgroup",
		Body: `{"version":1,"cpu_path":"/redis","levels":[{"path":"/redis","quota_us":20000,"period_us":100000}]}`,
	})
	s := recording.CgroupPrefix + "/redis"
	r.sample(s, "cpu.nr_periods", 0, 80)
	r.sample(s, "cpu.nr_throttled", 0, throttled)
	r.sample(s, "cpu.throttled_ns", 0, throttled*60e6)
	r.sample(s, "cpu.quota_us", 20000, 20000)
	return r.sample(s, "cpu.period_us", 100000, 100000)
}

func TestHostCauses(t *testing.T) {
	spinner := recording.Detail([]recording.Neighbour{{PID: 7, Command: "stress", Cores: 0.9}})
	for _, c := range []struct {
		name    string
		rec     hostCase
		verdict string
		first   string // cause
	}{
		{"throttled", newHostCase(true).threads(1.6, 0.1).cgroup(70).stalled(recording.KindThrottled,
			recording.ThreadDetail{Cgroup: "/redis"}), verdict.Findings, "server-cfs-throttled"},
		{
			"frozen", newHostCase(true).threads(1, 0).stalled(recording.KindFrozen, recording.ThreadDetail{}),
			verdict.Findings,
			"process-frozen",
		},
		{"frozen by the freezer", newHostCase(true).threads(1, 0).stalled(recording.KindFrozen,
			recording.ThreadDetail{Cgroup: "/docker/1"}), verdict.Findings, "process-frozen"},
		{"frozen inside a throttled cgroup", newHostCase(true).threads(1, 0).cgroup(2).stalled(recording.KindFrozen,
			recording.ThreadDetail{}), verdict.Findings, "process-frozen"},
		{
			"contention", newHostCase(true).threads(2, 4.2).stalled(recording.KindRunQueue, recording.ThreadDetail{}),
			verdict.Findings, "server-cpu-contention",
		},
		{"a quota that never bites", newHostCase(false).threads(1, 0.05).cgroup(0), verdict.Healthy, ""},
		{"throttled, and no call waited", newHostCase(false).threads(1, 0.05).cgroup(3), verdict.Healthy, ""},
		{"a little delay", newHostCase(false).threads(1, 0.3), verdict.Healthy, ""},
		// T0: the same stalls without the files of the host must not be called anything.
		{"only a connection", newHostCase(true), verdict.Inconclusive, ""},
		{"watched, and seen doing nothing", newHostCase(true).threads(0.2, 0.01), verdict.Inconclusive, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rec.Event(recording.Event{
				TimeNs: 1, Source: recording.SourceHost, Subject: hostNode,
				Kind: recording.KindNeighbours, Detail: spinner,
			})
			c.rec.Index()
			d := verdict.Diagnose(c.rec.Recording, "test")
			if d.Verdict != c.verdict {
				t.Fatalf("verdict %s (%s), want %s: %+v", d.Verdict, d.Summary, c.verdict, d.Findings)
			}
			if c.first == "" {
				return
			}
			f := d.Findings[0]
			if f.Cause != c.first || f.ExcessShare < 0.8 || f.Doubts > 0 || len(f.Evidence) == 0 ||
				len(f.FixLines()) == 0 {
				t.Errorf("%+v, want %s", f, c.first)
			}
		})
	}
}

// Diagnose is a pure function: twice the same recording, twice the same diagnosis.
func TestDiagnoseIsPure(t *testing.T) {
	r := newHostCase(true).threads(1.6, 0.1).cgroup(70).stalled(recording.KindThrottled, recording.ThreadDetail{})
	r.Index()
	a, b := recording.Detail(verdict.Diagnose(r.Recording, "x")), recording.Detail(verdict.Diagnose(r.Recording, "x"))
	if a != b {
		t.Errorf("%s\n%s", a, b)
	}
}
