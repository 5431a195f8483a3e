//go:build !linux

package main

import "slowpath/internal/cli"

// checkPin refuses --pin: only Linux pins threads to CPUs.
func (e *eachFlags) checkPin() error {
	if len(e.pin) > 0 {
		return cli.Usagef("--pin needs Linux: leave it out")
	}
	return nil
}

func pinProcess(int) error { return nil }
