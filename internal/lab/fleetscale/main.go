// Command fleetscale records what agents push, replays it as that of many agents to a Collector and ClickHouse's
// engine, and measures both; scripts/fleet-scale calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `fleetscale receive ADDRESS FILE      take what agents push, until SIGTERM; SIGUSR1: an incident begins
fleetscale measure [options] FILE    replay a recording`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleetscale:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("usage:\n" + usage)

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "receive":
		return receive(ctx, args[1], args[2], out)
	case len(args) > 1 && args[0] == "measure":
		return measureCommand(ctx, args[1:], out)
	}
	return errUsage
}
