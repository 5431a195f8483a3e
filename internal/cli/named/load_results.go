package named

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"

	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
)

// sqliteHead begins every SQLite file (sqlite.org/fileformat.html).
const sqliteHead = "SQLite format 3\x00"

// Result reads the result of a load from a document or from a recording.
func (c *CommandLine) Result(path string) (*bench.Result, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usagef("no such result: %s; check the name, or make it: slowpath bench HOST:PORT --json > %s",
			path, path)
	}
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if head, _ := in.Peek(len(sqliteHead)); bytes.Equal(head, []byte(sqliteHead)) {
		rec, err := c.Recording(path)
		if err != nil {
			return nil, err
		}
		r, err := bench.Recorded(rec)
		if err != nil {
			return nil, cli.Usagef("%s: %w", path, err)
		}
		return r, nil
	}
	r, err := bench.Read(in)
	if err != nil {
		return nil, cli.Usagef("%s: %w", path, err)
	}
	return r, nil
}
