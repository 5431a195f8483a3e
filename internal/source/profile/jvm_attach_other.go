//go:build !linux

package profile

import (
	"context"
	"errors"
	"net"

	"slowpath/internal/source/hostfs"
)

func attach(context.Context, hostfs.FS, int) error { return errors.ErrUnsupported }

func hasSocket(hostfs.FS, int) bool { return false }

func answersItself(net.Conn, int) bool { return false }
