package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"slowpath/internal/cli"
	"slowpath/internal/outfile"
)

// fixFlags say when the fix is in that is made between two watches.
type fixFlags struct {
	run   string
	wait  time.Duration
	enter *enter // nil where --run or --wait say it
}

func (x *fixFlags) add(f *pflag.FlagSet) {
	f.StringVar(&x.run, "run", "", "with --live: the fix is this `command` of a shell; it runs as the caller of sudo")
	f.DurationVar(&x.wait, "wait", 0, "with --live: the fix is in after this time, counted from the end of --run")
}

func (x *fixFlags) check(cmd *cobra.Command, stdin io.Reader) error {
	f, ok := stdin.(*os.File)
	switch {
	case cmd.Flags().Changed("run") && x.run == "":
		return cli.Usagef("--run is empty: give the command that makes the fix")
	case cmd.Flags().Changed("wait") && x.wait <= 0:
		return cli.Positive("wait", x.wait)
	case x.run == "" && x.wait == 0 && (!ok || !term.IsTerminal(int(f.Fd()))):
		return cli.Usagef("nobody can press Enter here, as stdin is no terminal: say when the fix is in, by " +
			"--run 'COMMAND' or --wait 5m")
	}
	return nil
}

// begin is called before the first watch.
func (x *fixFlags) begin(stdin io.Reader) {
	if x.run == "" && x.wait == 0 {
		x.enter = listen(stdin)
	}
}

// await returns once the fix is in, with the error of a command that failed, or at the end of ctx.
func (x *fixFlags) await(ctx context.Context, a *app) error {
	if x.enter != nil {
		return x.enter.await(ctx, a)
	}
	if x.run != "" {
		a.Say("running: " + x.run)
		if err := x.command(ctx, a).Run(); err != nil {
			return cli.Usagef("--run: the command failed (%w), and nothing was compared: correct it", err)
		}
	}
	for end := time.Now().Add(x.wait); ctx.Err() == nil && time.Until(end) > 0; {
		a.Progress("%s until the second watch; Ctrl-C ends it with the verdict of the first",
			time.Until(end).Round(time.Second))
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second, time.Until(end))):
		}
	}
	a.ProgressDone()
	return nil
}

// command is that of --run. What it prints goes to stderr: stdout has the comparison.
func (x *fixFlags) command(ctx context.Context, a *app) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", x.run)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	c.Stdin, c.Stdout, c.Stderr, c.Env = a.Stdin, a.Stderr, a.Stderr, os.Environ()
	uid, gid, ok := outfile.SudoCaller()
	if !ok {
		return c
	}
	as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		ids, _ := u.GroupIds() // of one without others: that of sudo
		for _, id := range ids {
			if n, err := strconv.ParseUint(id, 10, 32); err == nil {
				as.Groups = append(as.Groups, uint32(n))
			}
		}
		c.Env = append(c.Env, "HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return c
}

// enter is the terminal's Enter key. What is typed before somebody is asked for it is not kept until then.
type enter struct {
	asked   atomic.Bool
	pressed chan error
}

// listen reads a terminal until Enter is pressed after ask.
func listen(stdin io.Reader) *enter {
	e := &enter{pressed: make(chan error, 1)}
	go func() { // a read cannot be ended: it goes on until the program ends
		for lines := bufio.NewReader(stdin); ; {
			if _, err := lines.ReadString('\n'); err != nil || e.asked.Load() {
				e.pressed <- err
				return
			}
		}
	}()
	return e
}

func (e *enter) await(ctx context.Context, a *app) error {
	e.asked.Store(true)
	a.Say("Now make the fix, then press Enter. Ctrl-C ends it with the verdict of the first watch.")
	select {
	case err := <-e.pressed:
		if err != nil {
			return fmt.Errorf("nothing was compared: the terminal is gone (%w)", err)
		}
	case <-ctx.Done():
	}
	return nil
}
