package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// foundServer is a server that listens on this host.
type foundServer struct {
	address string // at which slowpath reaches it
	pid     int
	apart   bool // in a network namespace of its own
}

func (s foundServer) String() string {
	apart := ""
	if s.apart {
		apart = ", in a network namespace of its own"
	}
	return fmt.Sprintf("%s (pid %d%s)", s.address, s.pid, apart)
}

// elsewhereError is that of a target that nobody named, while servers listen elsewhere on this host.
type elsewhereError struct {
	error
	text string
}

func (e elsewhereError) Error() string { return e.text }
func (e elsewhereError) Unwrap() error { return e.error }

// elsewhere names the servers of this host where no server was named and the default address refuses connections.
func (a *app) elsewhere(cmd *cobra.Command, err error) error {
	var dial *target.Error
	if errors.As(err, &dial) && errors.Is(err, target.ErrNameNotFound) {
		return notCommand(cmd, dial.Addr, err)
	}
	if !a.assumed || !errors.As(err, &dial) || !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	found := foundServers()
	if len(found) == 0 {
		return err
	}
	var names []string
	for _, s := range found[:min(len(found), maxServersNamed)] {
		names = append(names, s.String())
	}
	if more := len(found) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	flags := ""
	if cmd.Flags().NFlag() > 0 {
		flags = " ..." // not repeated: a flag may hold a password
	}
	return elsewhereError{err, fmt.Sprintf("no server was named, and nothing listens on %s; servers of this host: %s; "+
		"run: %s %s%s", dial.Addr, strings.Join(names, ", "), cmd.CommandPath(), found[0].address, flags)}
}

// notCommand adds to an error about a name without an address that it may have been meant as a command.
func notCommand(cmd *cobra.Command, addr string, err error) error {
	host, _, _ := strings.Cut(addr, ":")
	if near := cli.CommandsLike(cmd, host); len(near) > 0 {
		return elsewhereError{err, fmt.Sprintf("%s; or was a command meant: %s %s", err, cmd.CommandPath(), near[0])}
	}
	return err
}

// maxServersNamed are named in an error, at most.
const maxServersNamed = 8
