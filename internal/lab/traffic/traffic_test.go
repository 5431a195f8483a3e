package traffic

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// The last error is kept, whatever type the one before it had.
func TestLastError(t *testing.T) {
	for _, tt := range []struct {
		name string
		errs []error
	}{
		{"none", nil},
		{"one", []error{io.EOF}},
		{"of different types", []error{
			io.EOF, fmt.Errorf("load: %w", io.EOF), &net.OpError{Op: "dial", Err: io.EOF},
			errors.Join(io.EOF),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Load
			var want error
			for _, err := range tt.errs {
				l.keep(err)
				want = err
			}
			if l.Err() != want {
				t.Errorf("%v, want %v", l.Err(), want)
			}
			if got := l.Failed(); got != int64(len(tt.errs)) {
				t.Errorf("%d failed, want %d", got, len(tt.errs))
			}
		})
	}
}
