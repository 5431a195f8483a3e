package caller_test

import (
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// TestHostNames: a caller of another host has its address and its name; one of this host has its process.
func TestHostNames(t *testing.T) {
	const node = "10.0.0.1:6379"
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
	rec.Snapshot(recording.Snapshot{
		TimeNs: 1, Source: recording.SourceServer, Subject: node, Name: "clients",
		Body: `{"id":1,"addr":"10.0.0.7:40312","name":"shop"}` + "\n" + `{"id":2,"addr":"[2001:db8::1]:7"}` + "\n" +
			`{"id":3,"addr":"10.0.0.8:1"}` + "\n",
	})
	for address, name := range map[string]string{"10.0.0.7": "app-3", "2001:db8::1": "six", "10.0.0.8": "self"} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: 1, Source: recording.SourceHost, Subject: recording.HostPrefix + address,
			Name: recording.SnapshotHostName, Body: recording.Detail(recording.HostName{Name: name, By: "dns"}),
		})
	}
	rec.Snapshot(recording.Snapshot{
		TimeNs: 1, Source: recording.SourceHost, Subject: recording.ConnPrefix + "10.0.0.8:1",
		Name: recording.SnapshotEnds,
		Body: recording.Detail(recording.ConnEnds{Node: node, PID: 8, Comm: "worker"}),
	})
	rec.Index()
	n := facts.New(rec).Nodes[0]
	for address, want := range map[string]string{
		"10.0.0.7:40312":  "10.0.0.7:40312 (app-3, name shop)",
		"[2001:db8::1]:7": "[2001:db8::1]:7 (six)",
		"10.0.0.8:1":      "10.0.0.8:1 (worker[8])",
		"10.0.0.9:1":      "10.0.0.9:1",
	} {
		if got := caller.WhoOf(n, address, "", 2).Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c := caller.WhoOf(n, "10.0.0.7:40312", "", 2).Culprit("KEYS")
	if c.Process != "10.0.0.7" || c.HostName != "app-3" ||
		c.Text != "10.0.0.7 (app-3), name shop, at 10.0.0.7:40312: KEYS" {
		t.Errorf("%+v", c)
	}
	names := caller.CallerNames([]*caller.Caller{{Name: "10.0.0.7", HostName: "app-3"}, {Name: "worker[8]", PID: 8}})
	if names != "10.0.0.7 (app-3), worker[8]" || caller.HostTextOf(n.Case, "10.0.0.9:1") != "10.0.0.9" {
		t.Error(names)
	}
	want := "10.0.0.7 (app-3) (1), 2001:db8::1 (six) (1), worker[8] (1)"
	if crowds := caller.CrowdsText(caller.Crowds(n), 9); crowds != want {
		t.Errorf("%s, want %s", crowds, want)
	}
}

// TestNamesOfPods: a caller in a pod has its name, or else its uid and the id of the container.
func TestNamesOfPods(t *testing.T) {
	const node, at = "10.0.0.1:6379", "10.0.0.8:1"
	for want, p := range map[string]recording.Program{
		"app.py[8] in pod shop/cart-1 (container app)": {PodNamespace: "shop", PodName: "cart-1", ContainerName: "app"},
		"app.py[8] in pod shop/cart-1":                 {PodNamespace: "shop", PodName: "cart-1"},
		"app.py[8] in container 123456789012 in pod u": {},
	} {
		p.Name, p.Pod, p.Container = "app.py", "u", "1234567890123456"
		rec := recording.New()
		rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
		rec.Snapshot(recording.Snapshot{
			TimeNs: 1, Source: recording.SourceHost, Subject: recording.ConnPrefix + at, Name: recording.SnapshotEnds,
			Body: recording.Detail(recording.ConnEnds{Node: node, PID: 8, Comm: "python3"}),
		})
		rec.Snapshot(recording.Snapshot{
			TimeNs: 1, Source: recording.SourceTap, Subject: recording.ProcessPrefix + "8",
			Name: recording.SnapshotProgram, Body: recording.Detail(p),
		})
		rec.Index()
		c := caller.WhoOf(facts.New(rec).Nodes[0], at, "", 2).Culprit("KEYS")
		if c.Text != want+": KEYS" || c.Pod != "u" || c.PodName != p.PodName || c.ContainerName != p.ContainerName {
			t.Errorf("%+v, want %s", c, want)
		}
	}
}
