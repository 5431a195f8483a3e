package apart_test

import (
	"bytes"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/agent/apart"
	"slowpath/internal/house/needs"
)

// asAgent tells the process of a test that it is an agent, with capabilities that programs which it executes would get.
const asAgent = "SLOWPATH_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) == "" {
		os.Exit(m.Run())
	}
	// limited a moment after its begin
	c := exec.Command("/bin/sh", "-c", "until grep -q 'data size *67108864' /proc/self/limits; do :; done; "+
		"cat /proc/self/status /proc/self/limits; env; cat /proc/self/stat")
	c.Stdout, c.Stderr, c.Env = os.Stdout, os.Stderr, apart.Environment("MORE=1")
	if err := apart.Run(c, apart.Limits{Nice: 19, Memory: 64 << 20}, nil); err != nil {
		log.Fatal(err)
	}
}

// TestNoCapabilities: a process that an agent starts has none of its capabilities, also not where the agent has them as
// systemd gives them (ambient), writes no file beyond its limit, and is told nothing of the agent's environment.
func TestNoCapabilities(t *testing.T) {
	needs.Real(t, needs.Root)
	program := programForAll(t)
	for name, ambient := range map[string][]uintptr{
		"ambient": {unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH}, "none": {unix.CAP_DAC_READ_SEARCH},
	} {
		c := exec.Command(program)
		c.Env = append(os.Environ(), asAgent+"=1", "REDISCLI_AUTH=secret", "LANG=C")
		c.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: 65533, Gid: 65533}, AmbientCaps: ambient,
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		for _, want := range []string{
			`Uid:\t65533\t65533\t65533\t65533\n`, `CapPrm:\t0{16}\n`, `CapEff:\t0{16}\n`,
			`CapAmb:\t0{16}\n`, `Max file size +0 +0 +bytes`, `Max core file size +0 +0`, `Max data size +67108864`,
			`MORE=1\n`, `LANG=C\n`, `\) R (\S+ ){15}19 `,
		} {
			if !regexp.MustCompile(strings.ReplaceAll(want, `\n`, `\s*\n`)).Match(out) {
				t.Errorf("%s: no %s in %s", name, want, out)
			}
		}
		if bytes.Contains(out, []byte("secret")) {
			t.Errorf("%s: it was told the password", name)
		}
	}
}

// programForAll is this test where other users may execute it.
func programForAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "slowpath-apart")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(os.Args[0])
	path := filepath.Join(dir, "test")
	if err := errors.Join(err, os.WriteFile(path, text, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}
