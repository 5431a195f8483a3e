package host

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Runtime is how many threads the runtime of a process keeps busy at most, as far as its files tell.
type Runtime struct {
	Go         string `json:"go,omitempty"`       // version it was built with: go1.24.3
	HeedsQuota bool   `json:"heeds_quota"`        // it takes the CPU quota of its cgroup into account by itself
	Why        string `json:"why,omitempty"`      // it does or does not
	Procs      int    `json:"procs,omitempty"`    // set by the environment (GOMAXPROCS, …) or an option; 0: not set
	ProcsBy    string `json:"procs_by,omitempty"` // name of that
	JVM        bool   `json:"jvm,omitempty"`      // it is a JVM
	// Libraries are its client libraries, as in the snapshot "process", which a caller of a proxy does not have.
	Libraries []recording.Library `json:"libraries,omitempty"`
}

// maxEnviron bounds how much of a process's environment is searched. Only the variables of environOf are kept.
const maxEnviron = 128 << 10

// runtimeOf reads what a process was built with and set to; false where it is neither a Go program nor a JVM, and none
// of its libraries is known.
func runtimeOf(fs FS, pid int) (r Runtime, ok bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	env := environOf(fs, dir)
	if info, err := builtWith(fs, strings.TrimSuffix(dir, "/")); err == nil {
		r.Go, r.Libraries = info.GoVersion, modulesOf(info)
		r.heeds(info, env["GODEBUG"])
		r.set("GOMAXPROCS", env["GOMAXPROCS"])
		return r, true
	}
	r.Libraries, _ = packagesOf(fs, strings.TrimSuffix(dir, "/"))
	cmdline, err := fs.ReadFile(dir + "cmdline")
	if err != nil || commandName(string(firstArg(cmdline))) != "java" {
		return r, len(r.Libraries) > 0
	}
	r.JVM, r.HeedsQuota, r.Why = true, true, "a JVM since 8u191 and 10 (UseContainerSupport)"
	for _, options := range []string{
		string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})),
		env["JAVA_TOOL_OPTIONS"], env["JDK_JAVA_OPTIONS"],
	} {
		for _, o := range strings.Fields(options) {
			if o == "-XX:-UseContainerSupport" {
				r.HeedsQuota, r.Why = false, o
			}
			if n, found := strings.CutPrefix(o, "-XX:ActiveProcessorCount="); found {
				r.set("-XX:ActiveProcessorCount", n)
			}
		}
	}
	return r, true
}

func firstArg(cmdline []byte) []byte {
	first, _, _ := bytes.Cut(cmdline, []byte{0})
	return first
}

func (r *Runtime) set(by, text string) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		r.Procs, r.ProcsBy = n, by
	}
}

// heeds finds out whether a Go program sets GOMAXPROCS by its cgroup's quota: Go does since 1.25, where the main module
// asks for that version (doc/godebug.md, containermaxprocs), and before that a module that is made for it.
func (r *Runtime) heeds(info *buildinfo.BuildInfo, godebug string) {
	for _, d := range info.Deps {
		if d.Path == "go.uber.org/automaxprocs" || d.Path == "github.com/KimMachineGun/automemlimit/automaxprocs" {
			r.HeedsQuota, r.Why = true, "has "+d.Path
			return
		}
	}
	for _, s := range info.Settings {
		if s.Key == "DefaultGODEBUG" {
			godebug = s.Value + "," + godebug // the last setting of a name wins
		}
	}
	r.HeedsQuota = goSince(info.GoVersion, 25)
	r.Why = info.GoVersion
	for _, kv := range strings.Split(godebug, ",") {
		switch strings.TrimSpace(kv) {
		case "containermaxprocs=0":
			r.HeedsQuota, r.Why = false, "GODEBUG containermaxprocs=0"
		case "containermaxprocs=1":
			r.HeedsQuota, r.Why = goSince(info.GoVersion, 25), info.GoVersion
		}
	}
}

// goSince compares "go1.24.3 X:…" with go1.MINOR. Another text is the version of a development tree, which is newer.
func goSince(version string, minor int) bool {
	var have int
	if _, err := fmt.Sscanf(version, "go1.%d", &have); err != nil {
		return true
	}
	return have >= minor
}

// environOf reads the variables of a process that are about its threads, and no others.
func environOf(fs FS, dir string) map[string]string {
	out := map[string]string{}
	b, err := fs.ReadFile(dir + "environ")
	if err != nil {
		return out
	}
	for kv := range bytes.SplitSeq(b[:min(len(b), maxEnviron)], []byte{0}) {
		name, value, ok := strings.Cut(string(kv), "=")
		switch name {
		case "GOMAXPROCS", "GODEBUG", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS":
			if ok {
				out[name] = value
			}
		}
	}
	return out
}
