//go:build !linux

package probing

import "slowpath/internal/cli"

// checkPin refuses --pin: only Linux pins threads to CPUs.
func (e *Each) checkPin() error {
	if len(e.Pin) > 0 {
		return cli.Usagef("--pin needs Linux: leave it out")
	}
	return nil
}

func pinProcess(int) error { return nil }
