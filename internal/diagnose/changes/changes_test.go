package changes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

const (
	node  = "127.0.0.1:6379"
	shell = "127.0.0.1:5000"
)

// watch is a recording of 20 s of one node, polled each second.
type watch struct{ *recording.Recording }

func newWatch(sources ...string) watch {
	w := watch{recording.New()}
	w.SetMeta(recording.MetaNodes, `["`+node+`"]`)
	w.SetMeta(recording.MetaStart, "1000000000")
	w.SetMeta(recording.MetaEnd, "21000000000")
	for at := range 20 {
		w.event(float64(at)+1.5, 0.001, recording.SourceServer, recording.KindPoll, struct{}{})
	}
	for _, s := range sources {
		w.SetMeta("source:"+s, `{"name":"`+s+`","used":true}`)
	}
	return w
}

func (w watch) event(at, took float64, source, kind string, detail any) {
	w.Event(recording.Event{
		TimeNs: int64(at * 1e9), DurationNs: int64(took * 1e9), Source: source, Subject: node, Kind: kind,
		Detail: recording.Detail(detail),
	})
}

func (w watch) ofMachine(at float64, source, kind string, detail any) {
	w.Event(recording.Event{
		TimeNs: int64(at * 1e9), Source: source, Subject: recording.SubjectMachine, Kind: kind,
		Detail: recording.Detail(detail),
	})
}

func (w watch) admin(at float64, op string) {
	w.event(at, 0.0001, recording.SourceTap, recording.KindAdminCommand, recording.AdminCommandDetail{
		Op: op, Client: shell, Process: "ops-shell[812]",
	})
}

func (w watch) snapshot(at float64, name string, body any) {
	w.Snapshot(recording.Snapshot{
		TimeNs: int64(at * 1e9), Source: recording.SourceServer, Subject: node, Name: name,
		Body: recording.Detail(body),
	})
}

func (w watch) sample(source, subject, name string, values ...float64) { // pairs of a time and a value
	for i := 0; i < len(values); i += 2 {
		w.Sample(recording.Sample{
			TimeNs: int64(values[i] * 1e9), Source: source, Subject: subject, Name: name, Value: values[i+1],
		})
	}
}

// said are the changes as "KIND TEXT by WHO, FROM-TO", times in seconds.
func (w watch) said() (out []string) {
	w.Index()
	for _, c := range changes.Of(facts.New(w.Recording)) {
		s := fmt.Sprintf("%s %s", c.Kind, c.Text)
		if len(c.By) > 0 {
			s += " by " + strings.Join(c.By, " or ")
		}
		out = append(out, fmt.Sprintf("%s, %.4g-%.4g", s, float64(c.FromNs)/1e9, float64(c.ToNs)/1e9))
	}
	return out
}

func TestChanges(t *testing.T) {
	settings := func(w watch) {
		w.snapshot(1.6, "config", map[string]string{"maxmemory": "0", "hz": "10", "save": "3600 1"})
		w.snapshot(9.51, "config", map[string]string{"maxmemory": "104857600", "hz": "10", "save": ""})
		w.sample(recording.SourceServer, node, "cmdstat_config|set.calls", 1.5, 0, 8.5, 0, 9.5, 2)
	}
	for name, tt := range map[string]struct {
		make func() watch
		want []string
	}{
		"settings, seen by the tap": {func() watch {
			w := newWatch(recording.SourceTap)
			settings(w)
			w.admin(8.8, "CONFIG SET")
			return w
		}, []string{`setting CONFIG SET maxmemory 100mb (before: 0), save "" (before: 3600 1) by ops-shell[812], 8.8-8.8`}},
		"settings, by the server alone": {func() watch {
			w := newWatch()
			settings(w)
			return w
		}, []string{`setting CONFIG SET maxmemory 100mb (before: 0), save "" (before: 3600 1), 8.5-9.5`}},
		"settings, where CONFIG is forbidden": {func() watch {
			w := newWatch()
			w.sample(recording.SourceServer, node, "maxmemory", 1.5, 0, 4.5, 0, 5.5, 1000)
			w.snapshot(1.5, "info", map[string]string{"maxmemory_policy": "noeviction"})
			w.snapshot(7.501, "info", map[string]string{"maxmemory_policy": "allkeys-lru"})
			return w
		}, []string{
			"setting CONFIG SET maxmemory 1000 (before: 0), 4.5-5.5",
			"setting CONFIG SET maxmemory-policy allkeys-lru (before: noeviction), 6.5-7.501",
		}},
		"a setting that is not read": {func() watch {
			w := newWatch(recording.SourceTap)
			w.admin(8.8, "CONFIG SET")
			w.admin(9.8, "CONFIG SET")
			return w
		}, []string{"command CONFIG SET, the first of 2 by ops-shell[812], 8.8-8.8"}},
		"a command that the tap did not see": {func() watch {
			w := newWatch()
			w.sample(recording.SourceServer, node, "cmdstat_client|pause.calls", 3.5, 0, 4.5, 1)
			return w
		}, []string{"command CLIENT PAUSE, 3.5-4.5"}},
		"role, limits and CPUs": {func() watch {
			w := newWatch()
			w.event(5.501, 0, recording.SourceServer, recording.KindRoleChange, map[string]string{
				"from": "master", "to": "slave",
			})
			w.Snapshot(recording.Snapshot{
				TimeNs: 1e9, Source: recording.SourceHost, Subject: node, Name: "cgroup", Body: `{"cpu_path":"/redis/a"}`,
			})
			for _, path := range []string{"/redis", "/app"} {
				w.sample(recording.SourceHost, "cgroup:"+path, "cpu.quota_us", 1, -1, 7, 20000)
				w.sample(recording.SourceHost, "cgroup:"+path, "cpu.period_us", 1, 100000)
			}
			w.sample(recording.SourceHost, node, "cpus_allowed", 1, 4, 8, 1)
			return w
		}, []string{
			"role the server's role is replica (before: primary), 4.5-5.501",
			"limit the CPU quota of /app is 0.20 cores (before: none), 6-7",
			"limit the CPU quota of /redis is 0.20 cores (before: none), 6-7",
			"cpus CPUs that the server may run on: 1 (before: 4), 7-8",
		}},
		"a mark": {func() watch {
			w := newWatch()
			w.ofMachine(5, recording.SourceWatch, recording.KindMark, recording.MarkDetail{
				Text: "deploy of shop 1.2.3",
			})
			return w
		}, []string{"mark marked: deploy of shop 1.2.3, 5-5"}},
		"the host's network and packages": {func() watch {
			w := newWatch()
			nft := func(at float64, pid int) {
				w.ofMachine(at, recording.SourceHost, recording.KindNetworkChange, recording.NetworkChangeDetail{
					What: "nftables rules", How: "changed", By: fmt.Sprintf("nft[%d]", pid),
				})
			}
			nft(5, 10)
			nft(6, 11) // again: it is no news
			w.ofMachine(7, recording.SourceHost, recording.KindNetworkChange, recording.NetworkChangeDetail{
				What: "route", How: "removed",
			})
			for at, name := range []string{"libc6", "redis-server", "a", "b", "c"} {
				d := recording.PackageDetail{AtNs: int64(at) * 1e9, How: "upgrade", Name: name, From: "1", To: "2"}
				if name == "c" {
					d.AtNs = 300e9
				}
				w.ofMachine(8, recording.SourceHost, recording.KindPackage, d)
			}
			return w
		}, []string{
			"package upgrade of libc6 (1 to 2), upgrade of redis-server (1 to 2), upgrade of a (1 to 2) and 1 more " +
				"package, 0-3",
			"network nftables rules of the host were changed by nft[10], 5-5",
			"network a route of the host was removed, 7-7",
			"package upgrade of c (1 to 2), 300-300",
		}},
		"the time before that of the recording": {func() watch {
			w := newWatch(recording.SourceTap)
			before := func(of recording.Recording) {
				for _, e := range of.Events {
					e.Source = recording.Before(e.Source)
					w.Event(e)
				}
				for _, s := range of.Snapshots {
					s.Source = recording.Before(s.Source)
					w.Snapshot(s)
				}
			}
			old := watch{recording.New()}
			old.admin(0.4, "CONFIG SET")
			old.event(0.2, 0, recording.SourceServer, recording.KindRestart, struct{}{})
			old.snapshot(-5, "config", map[string]string{"hz": "10"})
			old.snapshot(0.5, "config", map[string]string{"hz": "100"})
			before(*old.Recording)
			w.sample(recording.Before(recording.SourceHost), node, "cpus_allowed", -9, 4, 0.6, 2)
			w.sample(recording.SourceHost, node, "cpus_allowed", 1, 2)
			w.snapshot(1, "config", map[string]string{"hz": "100"})
			return w
		}, []string{
			"restart the server was restarted, -9-21",
			"cpus CPUs that the server may run on: 2 (before: 4), -0.4-0.6",
			"setting CONFIG SET hz 100 (before: 10) by ops-shell[812], 0.4-0.4001",
		}},
		"a restart by SHUTDOWN, with another version": {func() watch {
			w := newWatch(recording.SourceTap)
			w.event(5.2, 0, recording.SourceTap, recording.KindClose, recording.ConnDetail{
				Client: shell, PID: 812, Comm: "ops-shell", Side: recording.Client, AgeNs: 1e9, Waiting: 1,
				Op: "SHUTDOWN",
			})
			w.event(6, 0, recording.SourceServer, recording.KindRestart, map[string]string{
				"run_id_before": "a", "run_id_after": "b",
			})
			w.snapshot(1.501, "info", map[string]string{"redis_version": "7.0.14"})
			w.snapshot(6.501, "info", map[string]string{"redis_version": "7.0.15"})
			return w
		}, []string{
			"restart the server was restarted after SHUTDOWN by ops-shell[812], 1-21",
			"version the server's version is 7.0.15 (before: 7.0.14), 5.5-6.501",
		}},
		"nothing": {func() watch {
			w := newWatch(recording.SourceTap)
			w.snapshot(1.6, "config", map[string]string{"hz": "10"})
			w.snapshot(9.51, "config", map[string]string{"hz": "10"})
			return w
		}, nil},
	} {
		if got := tt.make().said(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestChangesOfCallers: what callers do otherwise since a time: a program that was not there, a command that was never
// counted, and rates that rise at once and stay so. A program that comes again and again is not new.
// TestCallersOfAnIncident: of the minute before an incident no connections are recorded, so that a program which
// connects every five seconds is no new one, as it would be in a watch that began then.
func TestCallersOfAnIncident(t *testing.T) {
	w := newWatch(recording.SourceTap)
	w.SetMeta(recording.MetaStart, "61000000000")
	w.SetMeta(recording.MetaEnd, "81000000000")
	w.sample(recording.Before(recording.SourceServer), node, "maxmemory", 1, 0, 58, 100<<20)
	for _, at := range []float64{65, 70, 75} {
		for kind, age := range map[string]float64{recording.KindOpen: 0, recording.KindClose: 0.1} {
			w.event(at+age, 0, recording.SourceTap, kind, recording.ConnDetail{
				Client: fmt.Sprintf("127.0.0.1:%.0f", 200+at), PID: 20 + int(at), Comm: "check", Side: recording.Client,
				AgeNs: int64(age * 1e9),
			})
		}
	}
	got := w.said()
	if len(got) != 1 || !strings.HasPrefix(got[0], "setting CONFIG SET maxmemory 100mb (before: 0)") {
		t.Errorf("got %q", got)
	}
}

func TestChangesOfCallers(t *testing.T) {
	w := newWatch(recording.SourceTap)
	conn := func(at float64, kind, client string, pid int, comm string, age float64) {
		w.event(at, 0, recording.SourceTap, kind, recording.ConnDetail{
			Client: client, PID: pid, Comm: comm, Side: recording.Client, AgeNs: int64(age * 1e9), Calls: 9,
		})
	}
	conn(8, recording.KindOpen, "127.0.0.1:100", 10, "batch", 0)
	conn(8.1, recording.KindOpen, "127.0.0.1:101", 10, "batch", 0)
	for _, at := range []float64{5, 10, 15} { // each time another process
		client := fmt.Sprintf("127.0.0.1:%.0f", 200+at)
		conn(at, recording.KindOpen, client, 20+int(at), "check", 0)
		conn(at+0.1, recording.KindClose, client, 20+int(at), "check", 0.1)
	}
	conn(12, recording.KindClose, "127.0.0.1:300", 40, "shop", 0) // it was there before
	w.sample(recording.SourceServer, node, "cmdstat_keys.calls", 8.5, 0, 9.5, 4)
	w.sample(recording.SourceServer, node, "cmdstat_get.calls", 1.5, 4, 9.5, 400)
	commands, bytes := 0.0, 0.0
	for at := range 20 {
		w.sample(recording.SourceServer, node, "total_commands_processed", float64(at)+1.5, commands)
		w.sample(recording.SourceServer, node, "total_net_input_bytes", float64(at)+1.5, bytes)
		rate, size := 100.0, 50.0
		if at >= 8 {
			rate, size = 1000, 5000
		}
		commands, bytes = commands+rate, bytes+rate*size
	}
	want := []string{
		"caller batch connected for the first time, and made 2 connections, 8-8",
		"new-command KEYS for the first time since the server counts, 8.5-9.5",
		"load the call rate rose to 1 000 commands per second (before: 100 commands per second), 9.5-10.5",
		"load the request size rose to 5 kB per command (before: 50 B per command), 9.5-10.5",
	}
	if got := w.said(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
