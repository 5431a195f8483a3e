//go:build !linux

package source

func ownDelay() (int64, bool) { return 0, false }
