package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/outfile"
)

// natives are the commands that an operator has without any tool.
var natives = []string{
	"INFO everything", "SLOWLOG GET 128", "LATENCY LATEST", "LATENCY DOCTOR", "CLIENT LIST", "MEMORY DOCTOR",
	"CONFIG GET *",
}

// prepares are what an operator has set up before an incident: without it LATENCY has no events.
var prepares = []string{"CONFIG SET latency-monitor-threshold 5", "LATENCY RESET", "SLOWLOG RESET"}

// nativeEnd bounds a native command.
const nativeEnd = 10 * time.Second

// server is how redis-cli reaches a server.
type server struct {
	address string
	tls     bool
}

// cli runs a command by redis-cli.
func (s server) cli(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nativeEnd)
	defer cancel()
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return "", err
	}
	args := []string{"--no-raw", "-h", host, "-p", port}
	if s.tls {
		args = append(args, "--tls", "--insecure")
	}
	out, err := exec.CommandContext(ctx, "redis-cli", append(args, strings.Fields(command)...)...).CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w: redis-cli is missing: apt-get install redis-tools", fault.ErrCannot)
	case err != nil && len(out) == 0:
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return string(out), nil
}

// prepare sets up what natives print. An old server may not know all of it.
func (s server) prepare(ctx context.Context) error {
	for _, command := range prepares {
		if _, err := s.cli(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// keep writes what the native commands print, as a terminal shows it.
func (s server) keep(ctx context.Context, path string) error {
	return outfile.Write(path, func(w io.Writer) error {
		for _, command := range natives {
			said, err := s.cli(ctx, command)
			if err != nil {
				return err
			}
			said = strings.TrimRight(strings.ReplaceAll(said, "\r\n", "\n"), "\n") // INFO has lines of the protocol
			if _, err := fmt.Fprintf(w, "%s> %s\n%s\n", s.address, command, said); err != nil {
				return err
			}
		}
		return nil
	})
}
