//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/servers"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "codis-proxy" { // as the lab executes this program itself, for a proxy
		os.Exit(Main())
	}
	testscript.Main(m, map[string]func(){"slowpath-lab": func() { os.Exit(Main()) }})
}

// slowpathBeside builds slowpath beside the slowpath-lab that is tested, and gives its path.
var slowpathBeside = sync.OnceValues(func() (path string, err error) {
	lab, err := exec.LookPath("slowpath-lab")
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(lab), "slowpath")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "../slowpath")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building slowpath: %w: %s", err, out)
	}
	return path, nil
})

// program is slowpath, which passes its commands lab and matrix on to the slowpath-lab beside it.
func program(t *testing.T) string {
	t.Helper()
	path, err := slowpathBeside()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestScripts runs testdata/*.txtar, as users have the lab: by the command slowpath lab. What the commands of the
// scripts do is told in cmd/slowpath/main_test.go.
func TestScripts(t *testing.T) {
	needs.Real(t)
	runScripts(t, "testdata")
}

// runScripts runs the scripts of a folder.
func runScripts(t *testing.T, dir string) {
	t.Helper()
	clitest.HangupEnds(t)
	program(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup:               clitest.SetUp,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "redis":
				return haveServer(t)
			case "client":
				return haveClient(t)
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: clitest.Commands(nil),
	})
}

// haveServer gets the server that scripts use into the cache.
func haveServer(t *testing.T) (bool, error) {
	cache, err := servers.OpenCache("")
	if err == nil {
		_, err = cache.Get(t.Context(), servers.Redis7015, t.Output())
	}
	if errors.Is(err, servers.ErrTool) || errors.Is(err, servers.ErrRegistry) {
		t.Logf("scripts that need a server are skipped: %v", err)
		return false, nil
	}
	return err == nil, err
}

// haveClient builds the client program that scripts use, unless the user's cache has it.
func haveClient(t *testing.T) (bool, error) {
	cache, err := clients.OpenCache("")
	if err == nil {
		_, err = cache.Get(t.Context(), clients.GoRedis9, t.Output())
	}
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		t.Logf("scripts that need a client are skipped: %v", err)
		return false, nil
	}
	return err == nil, err
}
