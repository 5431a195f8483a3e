package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// bashCompletion is a library that cobra's script for bash needs.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// TestCompletionInShells types the beginnings of words into real shells, on a terminal, and presses Tab.
func TestCompletionInShells(t *testing.T) {
	needs.Real(t, needs.Command("zsh", "zsh"), needs.Command("bash", "bash-completion"))
	program := builtProgram(t)
	for _, sh := range []struct {
		name, needs string
		begin       string // what the shell is told first
		args        []string
	}{
		{"bash", bashCompletion, ". " + bashCompletion + "; . <(slowpath completion bash)", []string{"--norc", "-i"}},
		{
			"zsh", "/usr/bin/zsh", "slowpath completion zsh > _slowpath; fpath=($PWD $fpath); autoload -Uz compinit; " +
				"compinit -u -D", []string{"-f", "-i"},
		},
	} {
		t.Run(sh.name, func(t *testing.T) {
			path, err := exec.LookPath(sh.name)
			if _, missing := os.Stat(sh.needs); err != nil || missing != nil {
				t.Skip("needs zsh, and bash with bash-completion: apt-get install zsh bash-completion")
			}
			c := exec.Command(path, sh.args...)
			c.Dir = t.TempDir()
			c.Env = []string{"PATH=" + program + ":" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8", "HOME=" + c.Dir}
			shell := typeInto(t, c)
			shell.write(t, sh.begin+"; echo now complete > begun\n")
			shell.await(t, "begun", func() bool {
				_, err := os.Stat(filepath.Join(c.Dir, "begun"))
				return err == nil
			})
			for typed, want := range map[string]string{
				"slowpath expl":                             "slowpath explain",
				"slowpath explain server-cf":                "slowpath explain server-cfs-throttled",
				"slowpath trace --command HGETA":            "slowpath trace --command HGETALL",
				"slowpath help topology sim":                "slowpath help topology simulate",
				"slowpath compare --liv":                    "slowpath compare --live",
				"slowpath topology simulate --change rejoi": "--change rejoin",
			} {
				shell.shown.reset()
				shell.write(t, typed+"\t")
				shell.await(t, want, func() bool {
					return strings.Contains(clitest.Drives.ReplaceAllString(shell.shown.String(), ""), want)
				})
				shell.write(t, "\x15") // Ctrl-U: the line is empty again
			}
		})
	}
}

// typing is a program on a terminal that the test types into.
type typing struct {
	terminal *os.File
	shown    lockedBuffer
}

func typeInto(t *testing.T, c *exec.Cmd) *typing {
	t.Helper()
	master, name, err := clitest.OpenPseudoterminal()
	if err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	c.Stdin, c.Stdout, c.Stderr = end, end, end
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait(); master.Close() })
	w := &typing{terminal: master}
	go func() { _, _ = io.Copy(&w.shown, master) }() // until it is closed
	return w
}

func (w *typing) write(t *testing.T, text string) {
	t.Helper()
	if _, err := w.terminal.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func (w *typing) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); await.Pass(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %q; shown: %q", what, w.shown.String())
		}
	}
}
