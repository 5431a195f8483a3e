package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// ReadPassword asks on the terminal, without echo.
func (p *Program) ReadPassword(ctx context.Context) (string, error) {
	f, ok := p.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", errors.New("--askpass needs a terminal: set REDISCLI_AUTH instead")
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(p.Stderr, "Please input password: ") // redis-cli's words
	type answer struct {
		password []byte
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		password, err := term.ReadPassword(fd)
		answered <- answer{password, err}
	}()
	defer fmt.Fprintln(p.Stderr)
	select {
	case got := <-answered:
		return string(got.password), got.err
	case <-ctx.Done(): // the read cannot be ended, but the echo must come back
		return "", errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}
