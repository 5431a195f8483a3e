package host

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"slowpath/internal/recording"
)

func TestRuntimeOfThisProgram(t *testing.T) {
	r, ok := runtimeOf(Root{}, os.Getpid())
	if !ok || r.Go != runtime.Version() || r.JVM {
		t.Errorf("%+v, %v", r, ok)
	}
	if _, ok := runtimeOf(Root{}, 0); ok {
		t.Error("no process has a runtime")
	}
}

func TestHeedsQuota(t *testing.T) {
	auto := []*debug.Module{{Path: "go.uber.org/automaxprocs"}}
	for name, tt := range map[string]struct {
		info    buildinfo.BuildInfo
		godebug string
		want    bool
	}{
		"new":                {buildinfo.BuildInfo{GoVersion: "go1.25.0"}, "", true},
		"old":                {buildinfo.BuildInfo{GoVersion: "go1.24.9"}, "", false},
		"old, with a module": {buildinfo.BuildInfo{GoVersion: "go1.20", Deps: auto}, "", true},
		"new, switched off": {
			buildinfo.BuildInfo{GoVersion: "go1.26.1 X:nodwarf5"},
			"http2client=0,containermaxprocs=0", false,
		},
		"an old go.mod": {buildinfo.BuildInfo{
			GoVersion: "go1.26.1",
			Settings:  []debug.BuildSetting{{Key: "DefaultGODEBUG", Value: "containermaxprocs=0"}},
		}, "", false},
		"that, switched on": {
			buildinfo.BuildInfo{
				GoVersion: "go1.26.1",
				Settings:  []debug.BuildSetting{{Key: "DefaultGODEBUG", Value: "containermaxprocs=0"}},
			},
			"containermaxprocs=1", true,
		},
		"a development tree":   {buildinfo.BuildInfo{GoVersion: "devel go1.27-abc"}, "", true},
		"other settings alone": {buildinfo.BuildInfo{GoVersion: "go1.25.0"}, "gctrace=1", true},
	} {
		var r Runtime
		if r.heeds(&tt.info, tt.godebug); r.HeedsQuota != tt.want {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestLibrariesOfRuntimes: what a caller is built with, or has installed, is known also where its connections end at a
// proxy.
func TestLibrariesOfRuntimes(t *testing.T) {
	got := modulesOf(&buildinfo.BuildInfo{Deps: []*debug.Module{
		{Path: "github.com/redis/go-redis/v9", Version: "v9.7.0"}, {Path: "golang.org/x/sys", Version: "v0.1.0"},
	}})
	want := []recording.Library{{Name: "go-redis", Version: "9.7.0", How: recording.LibraryBuiltIn}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	root := tree(t, map[string]string{
		"proc/7/cmdline": "python3\x00app.py\x00",
		"proc/7/root/usr/lib/python3.11/site-packages/redis-7.1.0.dist-info/METADATA": "",
	})
	if err := os.Symlink("/usr/bin/python3.11", filepath.Join(root.Dir, "proc/7/exe")); err != nil {
		t.Fatal(err)
	}
	if r, ok := runtimeOf(root, 7); !ok || r.Go != "" || r.JVM || len(r.Libraries) != 1 ||
		r.Libraries[0].Name != "redis-py" {
		t.Errorf("%+v, %v", r, ok)
	}
}

func TestRuntimeOfJVM(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/7/cmdline": "/usr/bin/java\x00-XX:-UseContainerSupport\x00Main\x00",
		"proc/7/environ": "HOME=/\x00JAVA_TOOL_OPTIONS=-Xmx1g -XX:ActiveProcessorCount=4\x00",
		"proc/8/cmdline": "redis-cli\x00java\x00",
	})
	if r, ok := runtimeOf(root, 7); !ok || !r.JVM || r.HeedsQuota || r.Procs != 4 ||
		r.ProcsBy != "-XX:ActiveProcessorCount" {
		t.Errorf("%+v, %v", r, ok)
	}
	if r, ok := runtimeOf(root, 8); ok {
		t.Errorf("%+v", r)
	}
}
