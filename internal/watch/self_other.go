//go:build !linux

package watch

func ownDelay() (int64, bool) { return 0, false }
