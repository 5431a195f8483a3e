// Package needs says to which layer a test belongs and what it needs, and skips it where that is missing.
//
// A test without a call of this package is hermetic: it starts no other process, uses no network but loopback, no
// root, no kernel program and no browser, and waits for no clock that runs by itself. It never fails because of what
// else the machine does.
//
// A test that needs more begins with Real or Long, and is in a file whose name says so: NAME_real_test.go or
// NAME_long_test.go (or NAME_real_linux_test.go). internal/house checks both. The layers have these commands:
//
//	hermetic   go test -short ./...      make hermetic
//	real       go test ./...             make test
//	long       LAYER=long go test ./...  make test-long
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Names and values of the attributes that the suite (internal/house/suite) reads from the output of go test.
const (
	LayerAttr = "layer" // RealLayer or LongLayer
	RealLayer = "real"
	LongLayer = "long"

	LeftAttr    = "left-to" // a test that is skipped, as something else runs it: LeftToAlone, or the command that does
	LeftToAlone = "alone"   // a run of its own, beside no other test
	LeftToReal  = "make test"
	LeftToLong  = "make test-long"
)

// Environment variables that the Makefile and the suite set.
const (
	LayerVar    = "LAYER"             // LongLayer: tests of that layer run, too
	TogetherVar = "SLOWPATH_TOGETHER" // not empty: other tests run at the same time
)

// Need is something outside the product that a test uses.
type Need struct {
	what    string
	missing func() string // why it is not there, and what installs it; "" where it is
}

// Real marks a test of the real layer, and skips it under -short and where a need is missing. It is the first call of
// such a test.
func Real(t testing.TB, all ...Need) {
	t.Helper()
	in(t, RealLayer, all)
}

// Long marks a test that takes too long for each change, and skips it but in `make test-long`.
func Long(t testing.TB, all ...Need) {
	t.Helper()
	if !InLong() {
		leave(t, LeftToLong)
	}
	in(t, LongLayer, all)
}

// InLong reports whether tests of the long layer run: a test of the real layer that does the same for several versions
// or libraries then takes all of them, and else those that are there soon.
func InLong() bool { return os.Getenv(LayerVar) == LongLayer }

func in(t testing.TB, layer string, all []Need) {
	t.Helper()
	t.Attr(LayerAttr, layer)
	if testing.Short() {
		leave(t, LeftToReal)
	}
	for _, n := range all {
		if n.missing == nil && os.Getenv(TogetherVar) != "" {
			leave(t, LeftToAlone)
		}
		if n.missing == nil {
			continue
		}
		if why := n.missing(); why != "" {
			t.Skipf("needs %s: %s", n.what, why)
		}
	}
}

// leave skips a test that another run has.
func leave(t testing.TB, to string) {
	t.Helper()
	t.Attr(LeftAttr, to)
	t.Skipf("left to: %s", to)
}

// QuietCPU: nothing else may run, as the test is about the time that something takes. The suite runs such tests after
// the others, one at a time.
var QuietCPU = Need{what: "a quiet CPU"}

// Root is user 0.
var Root = Need{"root", func() string {
	if os.Geteuid() != 0 {
		return "run as root"
	}
	return ""
}}

// BPF is a kernel that loads the programs of the tap.
var BPF = Need{"BPF", func() string {
	if runtime.GOOS != "linux" {
		return "Linux has it"
	}
	if os.Geteuid() != 0 {
		return "run as root"
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Sprintf("the kernel has no type information: %v", err)
	}
	return ""
}}

// CPUs are at least n processors.
func CPUs(n int) Need {
	return Need{fmt.Sprintf("%d CPUs", n), func() string {
		if runtime.NumCPU() < n {
			return fmt.Sprintf("this machine has %d", runtime.NumCPU())
		}
		return ""
	}}
}

// Command is a program in PATH, or at one of the other places, and the Debian package that has it.
func Command(name, debianPackage string, places ...string) Need {
	return Need{name, func() string {
		for _, place := range append(places, name, "/usr/sbin/"+name, "/sbin/"+name) {
			if _, err := exec.LookPath(place); err == nil {
				return ""
			}
		}
		return "apt-get install " + debianPackage
	}}
}

// File is one whose path matches a pattern (filepath.Glob), and how to get it.
func File(what, pattern, how string) Need {
	return Need{what, func() string {
		if found, _ := filepath.Glob(pattern); len(found) == 0 {
			return how
		}
		return ""
	}}
}

// Programs that several packages of tests use.
var (
	RedisServer = Command("redis-server", "redis-server")
	RedisCLI    = Command("redis-cli", "redis-tools")
	Benchmark   = Command("redis-benchmark", "redis-tools")
	Chromium    = Command("chromium", "chromium")
	GCC         = Command("gcc", "gcc libc6-dev")
	Python      = Command("python3", "python3")
	Twemproxy   = Command("nutcracker", "nutcracker")
	HAProxy     = Command("haproxy", "haproxy")
)

// CgroupV1CPU is the cpu controller of cgroup version 1, writable.
var CgroupV1CPU = Need{"cgroup v1 with the cpu controller", func() string {
	if why := Root.missing(); why != "" {
		return why
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err != nil {
		return err.Error()
	}
	return ""
}}

// NetworkNamespaces are what ip netns makes.
var NetworkNamespaces = Need{"network namespaces", func() string {
	if why := Root.missing(); why != "" {
		return why
	}
	return Command("ip", "iproute2").missing()
}}
