package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"slowpath/internal/format"
	"slowpath/internal/outfile"
)

// OpenNamed opens a file that the command line names. A pipe is one, too: <(…), /dev/stdin. A device such as
// /dev/zero is refused, since it has no end.
func OpenNamed(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.Mode()&os.ModeDevice != 0 {
		err = fmt.Errorf("%s is a device: give a file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadNamed reads the whole of a file that the command line names, which must have no more than so many bytes.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, err := OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %s: give a smaller file", path, format.Bytes(most))
	}
	return b, err
}

// NewFile makes a file that a flag names. A file that exists is not overwritten. Without a name there is none.
func NewFile(flag, name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	file, err := outfile.Create(name)
	if errors.Is(err, os.ErrExist) {
		return nil, Usagef("--%s %s: it exists already; name another file or remove it", flag, name)
	}
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	return file, nil
}

// RemoveFile removes a file that holds nothing; what cannot be removed stays.
func RemoveFile(name string) { _ = outfile.Remove(name) }
