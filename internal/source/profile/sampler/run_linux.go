package sampler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/clock"
)

// Run passes samples on until ctx ends. It may be called again: the clocks go on until Close.
func (s *Sampler) Run(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close() //nolint:errcheck // a timer
	for {
		on := alarm.Sleep(drainEvery)
		if err := s.drain(); err != nil || !on {
			return err
		}
	}
}

// drain takes what is in the ring buffer.
func (s *Sampler) drain() error {
	var record ringbuf.Record
	for {
		s.reader.SetDeadline(time.Unix(0, 1)) // do not wait: the program wakes no reader
		err := s.reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading samples: %w", err)
		}
		raw, err := parse(record.RawSample, &s.head)
		if err != nil {
			return err
		}
		s.Take(s.symbols.name(raw))
	}
}

const headerBytes = int(unsafe.Offsetof(clockSample{}.Stack))

// raw is a sample as the kernel gave it.
type raw struct {
	*clockSample // all but the stack
	stack        []byte
}

// parse takes a record of the ring buffer, which is valid until the next one is read. All of its fields but the stack
// are copied to head.
func parse(record []byte, head *clockSample) (raw, error) {
	if len(record) < headerBytes {
		return raw{}, fmt.Errorf("reading samples: a record of %d bytes", len(record))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(head)), headerBytes), record)
	rest := record[headerBytes:]
	return raw{head, rest[:min(len(rest), int(head.StackBytes))]}, nil
}

// word reads the user's memory at an address, as far as it was copied.
func (r raw) word(addr, sp uint64) (uint64, bool) {
	if addr < sp || addr-sp+8 > uint64(len(r.stack)) || addr+8 < addr {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r.stack[addr-sp:]), true
}
