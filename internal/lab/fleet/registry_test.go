package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeHost has its own /sys and /proc/self/mountinfo, records the commands, and answers with out and err.
func fakeHost(t *testing.T, mounts string, out string, err error) (Host, *[]string) {
	t.Helper()
	dir := t.TempDir()
	h := RealHost()
	h.Sys, h.Proc = filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
	for path, body := range map[string]string{
		"sys/block/loop3/loop/backing_file": "/tmp/slowpath-x/disk\n",
		"sys/block/loop4/loop/backing_file": "/home/disk\n",
		"proc/self/mountinfo":               mounts,
		"proc/swaps": "Filename Type Size Used " +
			"Priority\n/tmp/slowpath-x/swap\t\tfile\t1\t0\t-2\n/swapfile   file\t1\t0\t-3\n",
		"proc/sys/kernel/random/boot_id":              "boot\n",
		"proc/" + strconv.Itoa(os.Getpid()) + "/stat": "1 (me) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(body),
			0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var ran []string
	h.Run = func(_ context.Context, argv ...string) (string, error) {
		ran = append(ran, strings.Join(argv, " "))
		return out, err
	}
	return h, &ran
}

func mustOpen(t *testing.T, h Host) *Registry {
	t.Helper()
	r, err := openRegistry(t.TempDir(), h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustAdd(t *testing.T, r *Registry, e Entry) Entry {
	t.Helper()
	e, err := r.Add(e)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// orphan makes an entry look as if its lab had died.
func orphan(t *testing.T, r *Registry, e Entry) {
	t.Helper()
	e.Owner.StartTicks++
	if err := r.Update(e); err != nil {
		t.Fatal(err)
	}
}

func TestRegistryRoundTrip(t *testing.T) {
	r := mustOpen(t, RealHost())
	e := mustAdd(t, r, Entry{Kind: KindDir, Path: "/tmp/slowpath-absent", Info: &Info{Server: "redis-7.0.15"}})
	got, err := r.Entries()
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], e) {
		t.Errorf("%+v, %v, wanted %+v", got, err, e)
	}
	if err := errors.Join(r.Forget(e.ID), r.Forget(e.ID)); err != nil {
		t.Error(err)
	}
	checkNothingLeft(t, r)
}

func TestSweepOrderAndCommands(t *testing.T) {
	h, ran := fakeHost(t, "1 2 3:4 / /tmp/slowpath-x/mnt\\040a rw - ext4 /dev/loop3 rw\n", "", nil)
	r := mustOpen(t, h)
	for _, e := range []Entry{
		{Kind: KindDir, Path: "/tmp/slowpath-absent"},
		{Kind: KindLoop, Path: "/tmp/slowpath-x/disk"},
		{Kind: KindLoop, Path: "/tmp/slowpath-x/never"},
		{Kind: KindMount, Path: "/tmp/slowpath-x/mnt a"},
		{Kind: KindMount, Path: "/mnt/never"},
		{Kind: KindNetNS, Name: "slowpath-n"},
		{Kind: KindNft, Name: "inet slowpath"},
		{Kind: KindCgroup, Paths: []string{"/sys/fs/cgroup/slowpath-absent"}},
		{Kind: KindSwap, Path: "/tmp/slowpath-x/swap"},
		{Kind: KindSwap, Path: "/tmp/slowpath-x/never"},
	} {
		orphan(t, r, mustAdd(t, r, e))
	}
	mustAdd(t, r, Entry{Kind: KindNetNS, Name: "mine"})
	persistent := mustAdd(t, r, Entry{Kind: KindNetNS, Name: "up", Persistent: true})
	orphan(t, r, persistent)
	swept, err := r.Sweep(t.Context())
	if err != nil || len(swept) != 10 {
		t.Errorf("swept %v, %v", swept, err)
	}
	want := []string{
		"nft delete table inet slowpath", "ip netns del slowpath-n", "umount -l /tmp/slowpath-x/mnt a",
		"swapoff /tmp/slowpath-x/swap", "losetup -d /dev/loop3",
	}
	if !slices.Equal(*ran, want) {
		t.Errorf("ran %q, wanted %q", *ran, want)
	}
	if down, err := r.Down(t.Context(), DefaultName); err != nil || len(down) != 1 || down[0].ID != persistent.ID {
		t.Errorf("down %v, %v", down, err)
	}
}

func TestAfterARebootOnlyDirectoriesAreRemoved(t *testing.T) {
	h, ran := fakeHost(t, "", "", nil)
	r := mustOpen(t, h)
	dir := filepath.Join(t.TempDir(), "slowpath-d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{{Kind: KindDir, Path: dir}, {Kind: KindNetNS, Name: "n"}, {
		Kind:    KindProcess,
		Process: Process{PID: os.Getpid()},
	}} {
		e = mustAdd(t, r, e)
		e.BootID = "before"
		if err := r.Update(e); err != nil {
			t.Fatal(err)
		}
	}
	if swept, err := r.Sweep(t.Context()); err != nil || len(swept) != 3 || len(*ran) != 0 {
		t.Errorf("%v, %v, ran %v", swept, err, *ran)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is left")
	}
}

func TestWhatFailsStaysInTheRegistry(t *testing.T) {
	h, _ := fakeHost(t, "", "Operation not permitted", errors.New("exit status 1"))
	r := mustOpen(t, h)
	orphan(t, r, mustAdd(t, r, Entry{Kind: KindNetNS, Name: "n"}))
	if swept, err := r.Sweep(t.Context()); err == nil || len(swept) != 0 {
		t.Errorf("%v, %v", swept, err)
	}
	if left, _ := r.Entries(); len(left) != 1 {
		t.Errorf("left %v", left)
	}
	r.host.Run = func(context.Context, ...string) (string, error) {
		return `Cannot remove namespace file: No such file or directory`, errors.New("exit status 1")
	}
	if swept, err := r.Sweep(t.Context()); err != nil || len(swept) != 1 {
		t.Errorf("what is gone: %v, %v", swept, err)
	}
}

func TestDirectoryWithAMountIsKept(t *testing.T) {
	h, _ := fakeHost(t, "1 2 3:4 / /tmp/slowpath-x/mnt rw - ext4 /dev/loop3 rw\n", "", nil)
	if err := os.MkdirAll("/tmp/slowpath-x/mnt", 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll("/tmp/slowpath-x")
	if err := h.removeDir("/tmp/slowpath-x"); err == nil {
		t.Error("no error")
	}
}
