// Package fault breaks hosts and paths by the means that break them in production: CPU quotas, network namespaces with
// firewalls, slow disks, swap, slow name servers, proxies that delay or lose data.
package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"slowpath/internal/lab/fleet"
)

// ErrCannot says that this machine cannot make a scenario, and what would be needed.
var ErrCannot = errors.New("this machine cannot make the scenario")

// Lab is what a fault needs of the lab that it is made in.
type Lab interface {
	// Register records a thing before it is made. The lab removes it when it ends; if the lab is killed, the next one
	// does.
	Register(fleet.Entry) error
	// Defer adds a step of cleaning up. The steps run in reverse order when the lab ends.
	Defer(func(context.Context) error)
	// Logf writes a line to the log of the lab.
	Logf(format string, args ...any)
}

// needRoot returns an error unless this process is root's.
func needRoot(what string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: %s needs root", ErrCannot, what)
	}
	return nil
}

// run runs a command with an input. A command that is not installed or not allowed means that this machine cannot make
// the scenario.
func run(ctx context.Context, input string, argv ...string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s: %w: %s", ErrCannot, strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
