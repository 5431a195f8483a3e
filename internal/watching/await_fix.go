package watching

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

	"slowpath/internal/cli"
	"slowpath/internal/outfile"
)

// Fix says when the fix is in that is made between two watches.
type Fix struct {
	Run   string        // by a command of a shell
	Wait  time.Duration // from then on
	enter *enter        // nil where these say it
}

// Check refuses flags that do not say it.
func (x *Fix) Check(changed func(flag string) bool, stdin io.Reader) error {
	switch {
	case changed("run") && x.Run == "":
		return cli.Usagef("--run is empty: give the command that makes the fix")
	case changed("wait") && x.Wait <= 0:
		return cli.Positive("wait", x.Wait)
	case x.Run == "" && x.Wait == 0 && !isTerminal(stdin):
		return cli.Usagef("nobody can press Enter here, as stdin is no terminal: say when the fix is in, by " +
			"--run 'COMMAND' or --wait 5m")
	}
	return nil
}

// begin is called before the first watch.
func (x *Fix) begin(stdin io.Reader) {
	if x.Run == "" && x.Wait == 0 {
		x.enter = listen(stdin)
	}
}

// await returns once the fix is in, with the error of a command that failed, or at the end of ctx.
func (x *Fix) await(ctx context.Context, p *cli.Program) error {
	if x.enter != nil {
		return x.enter.await(ctx, p)
	}
	if x.Run != "" {
		p.Say("running: " + x.Run)
		if err := x.command(ctx, p).Run(); err != nil {
			return cli.Usagef("--run: the command failed (%w), and nothing was compared: correct it", err)
		}
	}
	for end := time.Now().Add(x.Wait); ctx.Err() == nil && time.Until(end) > 0; {
		p.Progress("%s until the second watch; Ctrl-C ends it with the verdict of the first",
			time.Until(end).Round(time.Second))
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second, time.Until(end))):
		}
	}
	p.ProgressDone()
	return nil
}

// command is that of --run. What it prints goes to stderr: stdout has the comparison.
func (x *Fix) command(ctx context.Context, p *cli.Program) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", x.Run)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	c.Stdin, c.Stdout, c.Stderr, c.Env = p.Stdin, p.Stderr, p.Stderr, os.Environ()
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

func (e *enter) await(ctx context.Context, p *cli.Program) error {
	e.asked.Store(true)
	p.Say("Now make the fix, then press Enter. Ctrl-C ends it with the verdict of the first watch.")
	select {
	case err := <-e.pressed:
		if err != nil {
			return fmt.Errorf("nothing was compared: the terminal is gone (%w)", err)
		}
	case <-ctx.Done():
	}
	return nil
}
