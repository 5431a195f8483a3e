package cli

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// Paged writes a text to stdout. On a terminal that it does not fit, a pager shows it: that of SLOWPATH_PAGER, else of
// PAGER, else less. An empty SLOWPATH_PAGER, and cat, are none.
func (p *Program) Paged(write func(io.Writer) error) error {
	file, ok := p.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || !isTerminalFile(p.Stdin) {
		return write(p.Stdout)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	_, height, err := term.GetSize(int(file.Fd()))
	if err == nil && bytes.Count(text.Bytes(), []byte("\n")) >= height && p.page(file, text.Bytes()) {
		return nil
	}
	_, err = p.Stdout.Write(text.Bytes())
	return err
}

func isTerminalFile(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// page has a pager show a text, and waits until somebody leaves it. It is false where there is no pager.
func (p *Program) page(out *os.File, text []byte) bool {
	command, given := os.LookupEnv("SLOWPATH_PAGER")
	if !given {
		command = cmp.Or(p.Env("PAGER"), "less")
	}
	words := strings.Fields(command)
	if len(words) == 0 || words[0] == "cat" {
		return false
	}
	c := exec.Command(words[0], words[1:]...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), out, os.Stderr
	// as git does: colours, no screen of its own for what fits. Secure: no commands of a shell, which would be root's.
	c.Env = append(os.Environ(), "LESS="+cmp.Or(p.Env("LESS"), "FRX"), "LESSSECURE=1")
	p.status.paging.Store(true) // Ctrl-C is the pager's
	defer p.status.paging.Store(false)
	if err := c.Start(); err != nil {
		return false
	}
	_ = c.Wait() // somebody left it, however
	return true
}
