package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawFile reads with pread alone: no poller, no lock, no allocation, for files that are read hundreds of times a
// second.
type rawFile int

func openRaw(path string) (rawFile, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return rawFile(fd), nil
}

// ReadAt reads once; files of /proc and /sys of less than a page come whole.
func (f rawFile) ReadAt(p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(f), p, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// ReadPromptly reads once from the beginning.
func (f rawFile) ReadPromptly(p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(f), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (f rawFile) Close() error { return unix.Close(int(f)) }

// wholeFiles are buffers of readWhole, each as large as most files are.
var wholeFiles = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// maxPooled is the largest of them, in bytes: a rare file of a megabyte must not stay in memory.
const maxPooled = 256 << 10

// readWhole is os.ReadFile without the poller, which a file of /proc or /sys cannot be in: 4 system calls in place of
// 13.
func readWhole(path string) ([]byte, error) {
	f, err := openRaw(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pooled := wholeFiles.Get().(*[]byte)
	defer wholeFiles.Put(pooled)
	buffer, n := *pooled, 0
	for n <= MaxFile {
		if n == len(buffer) {
			buffer = append(buffer, make([]byte, n)...)
		}
		got, err := f.ReadAt(buffer[n:], int64(n))
		if n += got; errors.Is(err, io.EOF) {
			if len(buffer) <= maxPooled {
				*pooled = buffer
				return bytes.Clone(buffer[:n]), nil
			}
			return buffer[:n], nil
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
	}
	return nil, tooLarge(path, MaxFile)
}

// blockDevice is the name of the block device that has a file.
func blockDevice(fs Named, file os.FileInfo) string {
	st, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return BlockDevice(fs, uint64(st.Dev)) // its type differs by architecture
}

// BlockDevice is the name of the block device with a number. File systems of several devices (btrfs, overlay) have a
// number that is not one of a device.
func BlockDevice(fs Named, dev uint64) string {
	at, err := fs.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev)))
	if err != nil {
		return ""
	}
	return filepath.Base(at)
}
