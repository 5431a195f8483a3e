//go:build !linux

package privilege

// Drop does nothing: the rights that it gives up are those of Linux.
func Drop([]User, string) error { return nil }

// Stay does nothing, as Drop.
func Stay(User, string) error { return nil }

// Able is nil: there is nothing to give up.
func Able() error { return nil }
