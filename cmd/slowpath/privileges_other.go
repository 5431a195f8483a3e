//go:build !linux

package main

import (
	"slowpath/internal/source/profile"
	"slowpath/internal/wire/target"
)

func (*app) dropper([]string, []target.Target, []profile.Target) func() { return func() {} }
