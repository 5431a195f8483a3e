package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEntryCheck(t *testing.T) {
	good := []Entry{
		{Kind: KindProcess, Process: Process{PID: 2}},
		{Kind: KindProcess, Path: "/tmp/slowpath-x"},
		{Kind: KindDir, Path: "/tmp/slowpath-x"},
		{Kind: KindCgroup, Paths: []string{"/sys/fs/cgroup/cpu/lab"}},
		{Kind: KindNetNS, Name: "lab"},
		{Kind: KindNft, Name: "inet lab_1"},
		{Kind: KindMount, Path: "/mnt/x"},
		{Kind: KindLoop, Path: "/tmp/f"},
		{Kind: KindSwap, Path: "/tmp/slowpath-x/swap"},
	}
	bad := []Entry{
		{},
		{Kind: "other", Path: "/tmp/slowpath-x"},
		{Kind: KindProcess},
		{
			Kind:    KindProcess,
			Process: Process{PID: 1},
		},
		{Kind: KindProcess, Process: Process{PID: -5}},
		{Kind: KindDir, Path: "/"},
		{Kind: KindDir, Path: "/home"},
		{Kind: KindDir, Path: "slowpath-x"},
		{Kind: KindDir, Path: "/tmp/slowpath-x/.."},
		{Kind: KindCgroup},
		{Kind: KindCgroup, Paths: []string{"/sys/fs/cgroup"}},
		{
			Kind:  KindCgroup,
			Paths: []string{"/sys/fs/cgroup/../x"},
		},
		{Kind: KindCgroup, Paths: []string{"/sys/fs/cgroup/a", "/etc"}},
		{Kind: KindNetNS, Name: "-all"},
		{Kind: KindNetNS, Name: "../x"},
		{Kind: KindNft, Name: "inet"},
		{Kind: KindNft, Name: "inet a; flush"},
		{Kind: KindMount, Path: "/"},
		{Kind: KindMount, Path: "x"},
		{Kind: KindLoop},
		{Kind: KindSwap, Path: "/swapfile"},
		{Kind: KindSwap, Path: "/dev/vda2"},
	}
	for _, e := range good {
		if err := e.check("/sys/fs/cgroup"); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
	r := mustOpen(t, RealHost())
	for _, e := range bad {
		if _, err := r.Add(e); err == nil {
			t.Errorf("%+v: no error", e)
		}
	}
	checkNothingLeft(t, r)
}

func TestRegistryDirectory(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	r, err := OpenRegistry("")
	if err != nil || r.dir != filepath.Join(base, "slowpath", "lab") {
		t.Errorf("%v, %v", r, err)
	}
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(r.dir, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if _, err := OpenRegistry(dir); err == nil || !strings.Contains(err.Error(), "belongs to you") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestForeignFilesInTheRegistry(t *testing.T) {
	r := mustOpen(t, RealHost())
	e := mustAdd(t, r, Entry{Kind: KindDir, Path: "/tmp/slowpath-absent"})
	for name, body := range map[string]string{
		"broken.json": "{",
		"evil.json":   `{"id":"evil","kind":"dir","path":"/home"}`, "moved.json": `{"id":"x"}`, "note": "",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Entries()
	if err == nil || strings.Count(err.Error(), "inspect it and remove it") != 3 || len(got) != 1 || got[0].ID != e.ID {
		t.Errorf("%v, %v", got, err)
	}
}
