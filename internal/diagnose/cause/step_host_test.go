package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

func TestCPUList(t *testing.T) {
	for _, c := range []struct {
		first, last, without int
		want                 string
	}{
		{0, 3, 0, "1-3"},
		{0, 3, 1, "0,2-3"},
		{0, 3, 3, "0-2"},
		{0, 1, 0, "1"},
		{0, 0, 0, ""},
		{0, 7, -1, "0-7"},
		{0, -1, 0, ""},
	} {
		if got := cause.CPUList(c.first, c.last, c.without); got != c.want {
			t.Errorf("%d to %d without %d: %q, want %q", c.first, c.last, c.without, got, c.want)
		}
	}
}

// TestClientQuotaStep: the limit is removed where it was set, and comes back as it was.
func TestClientQuotaStep(t *testing.T) {
	const container = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		name, cgroup string
		version      int
		quotaUs      float64
		kind         remedy.Kind
		want, undo   string // command, or a part of a change's text
	}{
		{
			"version 1", "/batch", 1, 20000, remedy.Command,
			"echo -1 > /sys/fs/cgroup/cpu/batch/cpu.cfs_quota_us",
			"echo 20000 > /sys/fs/cgroup/cpu/batch/cpu.cfs_quota_us",
		},
		{
			"version 2", "/a b", 2, 20000, remedy.Command,
			"echo max > '/sys/fs/cgroup/a b/cpu.max'", "echo 20000 100000 > '/sys/fs/cgroup/a b/cpu.max'",
		},
		{
			"a systemd unit", "/system.slice/app.service", 2, 20000, remedy.Command,
			"systemctl set-property app.service CPUQuota=", "systemctl set-property app.service CPUQuota=20%",
		},
		{
			"a container", "/system.slice/docker-" + container + ".scope", 2, 150000, remedy.Command,
			"docker update --cpus=3 0123456789ab", "docker update --cpus=1.50 0123456789ab",
		},
		{
			"a container, version 1", "/docker/" + container, 1, 50000, remedy.Command,
			"docker update --cpus=1 0123456789ab", "docker update --cpus=0.50 0123456789ab",
		},
		{
			"a pod", "/kubepods/burstable/podX/Y", 2, 20000, remedy.Command,
			"kubectl set resources deployment/<name of the workload> -c <name of the container> --limits=cpu=0",
			"",
		},
		{"an unknown quota", "/batch", 2, 0, remedy.Change, "of its cgroup /batch", ""},
		{"an unknown version", "/batch", 0, 20000, remedy.Change, "of its cgroup /batch", ""},
		{"an unknown cgroup", "", 2, 0, remedy.Change, "CPUQuota of its systemd unit", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newHostCase(false)
			for name, value := range map[string]float64{"cpu.quota_us": c.quotaUs, "cpu.period_us": 100000} {
				r.sample(recording.CgroupPrefix+c.cgroup, name, value, value)
			}
			r.Snapshot(recording.Snapshot{
				Source: recording.SourceHost, Subject: hostNode, Name: "cgroup", Body: fmt.Sprintf(`{"version":%d}`, c.version),
			})
			r.Index()
			n := facts.New(r.Recording).Nodes[0]
			s := cause.ClientQuotaStep(n, c.cgroup, "app[7]").Finish()
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			said := s.Command
			if c.kind == remedy.Change {
				said = s.Text
			}
			if s.Kind != c.kind || s.Undo != c.undo || c.kind == remedy.Command && said != c.want ||
				!strings.Contains(said, c.want) {
				t.Errorf("%+v, want %s %q, undo %q", s, c.kind, c.want, c.undo)
			}
			bare := c.kind == remedy.Change || strings.HasPrefix(c.want, "echo ") // what the lab can carry out
			if proof := remedy.ProofOf("client-cfs-throttled", s.ID, ""); (proof != nil) != bare {
				t.Errorf("step %s has the proof %+v", s.ID, proof)
			}
		})
	}
}

// TestStepsOnTheHost: the commands name the processes and the CPUs of the recording, and no others.
func TestStepsOnTheHost(t *testing.T) {
	neighbours := recording.Detail([]recording.Neighbour{
		{PID: 7, Command: "stress", Cores: 0.9},
		{PID: 8, Command: "backup", Cores: 0.4},
		{PID: 9, Command: "app", Cores: 0.9, Caller: true},
		{PID: 10, Command: "ksoftirqd/0", Cores: 0.3},
		{PID: 11, Command: "kworker/0:1", Cores: 0.3},
	})
	crowded := func(cpus float64) hostCase {
		r := newHostCase(true).threads(2, 4.2).stalled(recording.KindRunQueue, recording.ThreadDetail{}).
			sample(hostNode, "main.cpu", 0, 0).sample(recording.SubjectMachine, "cpu.count", cpus, cpus)
		r.Event(recording.Event{
			TimeNs: 1, Source: recording.SourceHost, Subject: hostNode, Kind: recording.KindNeighbours,
			Detail: neighbours,
		})
		return r
	}
	frozen := func(version string, d recording.ThreadDetail) hostCase {
		r := newHostCase(true).threads(1, 0).stalled(recording.KindFrozen, d)
		r.Snapshot(recording.Snapshot{
			Source: recording.SourceHost, Subject: hostNode, Name: "cgroup", Body: `{"version":` + version + `}`,
		})
		return r
	}
	still := frozen("2", recording.ThreadDetail{TID: 42})
	still.Event(recording.Event{
		TimeNs: 7e9, DurationNs: 1e9, Source: recording.SourceHost, Subject: hostNode, Kind: recording.KindFrozen,
		Detail: recording.Detail(recording.ThreadDetail{TID: 42, Share: 1}),
	})
	for _, c := range []struct {
		name    string
		rec     hostCase
		id      string // of the first step
		command string
	}{
		{"neighbours", crowded(4), "move-other-processes", "for p in 7 8; do taskset -acp 1-3 $p; done"},
		{"neighbours, and one CPU", crowded(1), "move-other-processes", ""},
		{
			"stops that ended", frozen("2", recording.ThreadDetail{TID: 42}), "find-who-stops-it",
			"bpftrace -e 'tracepoint:signal:signal_generate /args->sig == 19/ " +
				`{ printf("%s[%d] -> %d\n", comm, pid, args->pid); }'`,
		},
		{"a stop that goes on", still, "let-it-go-on", "kill -CONT 42"},
	} {
		t.Run(c.name, func(t *testing.T) { firstStep(t, c.rec, 0, c.id, c.command) })
	}
	for version, command := range map[string]string{
		"1": "echo THAWED > /sys/fs/cgroup/freezer/docker/1/freezer.state",
		"2": "echo 0 > /sys/fs/cgroup/docker/1/cgroup.freeze",
	} {
		rec := frozen(version, recording.ThreadDetail{TID: 42, Cgroup: "/docker/1"})
		firstStep(t, rec, 1, "let-it-go-on", command)
	}
}

// firstStep checks a step of the first finding of a recording, and that all of its steps are well formed.
func firstStep(t *testing.T, rec hostCase, index int, id, command string) {
	t.Helper()
	rec.Index()
	d := verdict.Diagnose(rec.Recording, "test")
	if len(d.Findings) == 0 || len(d.Findings[0].FixSteps) <= index {
		t.Fatalf("%s: %+v", d.Verdict, d.Findings)
	}
	for _, s := range d.Findings[0].FixSteps {
		if err := s.Finish().Check(); err != nil {
			t.Error(err)
		}
	}
	if s := d.Findings[0].FixSteps[index]; s.ID != id || s.Command != command {
		t.Errorf("%+v, want %s %q", s, id, command)
	}
}
