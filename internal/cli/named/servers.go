package named

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// maxServersNamed are named in an error, at most.
const maxServersNamed = 8

// Server is a server that listens on this host.
type Server struct {
	Address string // at which slowpath reaches it
	PID     int
	Apart   bool // in a network namespace of its own
}

func (s Server) String() string {
	apart := ""
	if s.Apart {
		apart = ", in a network namespace of its own"
	}
	return fmt.Sprintf("%s (pid %d%s)", s.Address, s.PID, apart)
}

// elsewhereError is that of a target that nobody named, while servers listen elsewhere on this host.
type elsewhereError struct {
	error
	text string
}

func (e elsewhereError) Error() string { return e.text }
func (e elsewhereError) Unwrap() error { return e.error }

// Elsewhere names the servers of this host where no server was named and the default address refuses connections.
func (c *CommandLine) Elsewhere(cmd *cobra.Command, err error) error {
	var dial *target.Error
	if errors.As(err, &dial) && errors.Is(err, target.ErrNameNotFound) {
		return notCommand(cmd, dial.Addr, err)
	}
	if !c.assumed || !errors.As(err, &dial) || !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	found := Servers()
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
		"run: %s %s%s", dial.Addr, strings.Join(names, ", "), cmd.CommandPath(), found[0].Address, flags)}
}

// notCommand adds to an error about a name without an address that it may have been meant as a command.
func notCommand(cmd *cobra.Command, addr string, err error) error {
	host, _, _ := strings.Cut(addr, ":")
	if near := cli.CommandsLike(cmd, host); len(near) > 0 {
		return elsewhereError{err, fmt.Sprintf("%s; or was a command meant: %s %s", err, cmd.CommandPath(), near[0])}
	}
	return err
}

// defaultAddress is watched where nobody names one.
const defaultAddress = "127.0.0.1:6379"

// OrFound are the servers of this host where none is named and nothing listens on the default address. A password is
// for those that the user named: who else has a process of that name would see it.
func (c *CommandLine) OrFound(args []string) []string {
	w := &c.Where
	secret := w.Password != "" || w.AskPass || w.User != "" || c.Env("REDISCLI_AUTH") != ""
	if !c.Unnamed(args) || secret {
		return args
	}
	var found []string
	for _, s := range Servers() {
		if s.Address == defaultAddress {
			return args
		}
		if !s.Apart && len(found) < maxServersNamed {
			found = append(found, s.Address)
		}
	}
	if len(found) > 0 {
		c.Say("no server was named; those of this host are watched: " + strings.Join(found, ", "))
	}
	return found
}
