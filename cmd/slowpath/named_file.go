package main

import (
	"fmt"
	"io"
	"os"

	"slowpath/internal/format"
)

// openNamed opens a file that the command line names. A pipe is one, too: <(…), /dev/stdin. A device such as
// /dev/zero is refused, since it has no end.
func openNamed(path string) (*os.File, error) {
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

// readNamed reads the whole of a file that the command line names, which must have no more than so many bytes.
func readNamed(path string, most int64) ([]byte, error) {
	f, err := openNamed(path)
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
