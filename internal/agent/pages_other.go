//go:build !linux

package agent

func releaseProgram() {}
