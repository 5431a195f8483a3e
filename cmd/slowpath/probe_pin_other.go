//go:build !linux

package main

// checkPin refuses --pin: only Linux pins threads to CPUs.
func (e *eachFlags) checkPin() error {
	if len(e.pin) > 0 {
		return usagef("--pin needs Linux: leave it out")
	}
	return nil
}

func pinProcess(int) error { return nil }
