package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// recordedProfiles is a recording with two readings of goroutines, or without any.
func recordedProfiles(t *testing.T, readings int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.slowpath")
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := stacks.Write(&stacks.Profile{
		Types:  []stacks.Type{{Name: "goroutine", Unit: "count"}},
		Stacks: []stacks.Stack{{Frames: []string{"main.main", "lib.Get"}, Values: []int64{7}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range readings {
		w.Profile(recording.Profile{
			TimeNs: int64(i + 1), Subject: "pprof:[::1]:6060", Kind: recording.ProfileGoroutine,
			Pprof: body,
		})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportWritesProfiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "stacks")
	var out, errOut bytes.Buffer
	a := appOn(&out, &errOut)
	if code := a.execute(t.Context(), []string{
		"report", recordedProfiles(t, 2), "--profiles",
		dir,
	}); code != cli.ExitClean {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	name := filepath.Join(dir, "pprof----1--6060-goroutine")
	if text, err := os.ReadFile(name + ".collapsed"); string(text) != "main.main;lib.Get 14\n" {
		t.Errorf("%q, %v", text, err)
	}
	body, err := os.ReadFile(name + ".pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := stacks.Read(body); err != nil || p.Total(0) != 14 {
		t.Errorf("%+v, %v", p, err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "flame.html")); !strings.Contains(string(page),
		"lib.Get: 14 count") || !strings.Contains(string(page), "Sum of 2 readings") {
		t.Errorf("%s, %v", page, err)
	}
}

func TestReportWithoutProfiles(t *testing.T) {
	var out, errOut bytes.Buffer
	a := appOn(&out, &errOut)
	if code := a.execute(t.Context(), []string{
		"report", recordedProfiles(t, 0), "--profiles",
		t.TempDir(),
	}); code != cli.ExitUsage || !strings.Contains(errOut.String(), "--pprof ADDRESS") {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
}

func TestProcessesToSample(t *testing.T) {
	for text, want := range map[string]int{"cpu": 0, fmt.Sprintf("cpu:%d", os.Getpid()): os.Getpid()} {
		if pid, err := sampledProcess(text); pid != want || err != nil {
			t.Errorf("%s: %d, %v", text, pid, err)
		}
	}
	for _, text := range []string{"", "CPU", "cpu:", "cpu:x", "cpu:-1", "cpu7", "mem", "cpu:1073741824"} {
		var out, errOut bytes.Buffer
		a := appOn(&out, &errOut)
		if code := a.execute(t.Context(), []string{
			"doctor", "127.0.0.1:1", "--profile",
			text,
		}); code != cli.ExitUsage ||
			!strings.Contains(errOut.String(), "ps -eo pid,comm") {
			t.Errorf("%q: exit code %d: %s", text, code, errOut.String())
		}
	}
}

// TestReportFollowsNoLink: somebody else may have put a link where a profile is to be written.
func TestReportFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "flame.html")); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	a := appOn(&out, &errOut)
	code := a.execute(t.Context(), []string{"report", recordedProfiles(t, 1), "--profiles", dir})
	if body, err := os.ReadFile(victim); code != cli.ExitUsage || string(body) != "kept" || err != nil ||
		!strings.Contains(errOut.String(), "flame.html is a link: remove it, or name another place") {
		t.Errorf("exit code %d: %s; the file holds %q, %v", code, errOut.String(), body, err)
	}
}
