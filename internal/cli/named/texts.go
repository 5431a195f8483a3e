package named

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/source/pasted"
)

// OfTexts makes a recording of what servers said of themselves in texts, "-" for the standard input, and gives its
// file. It is removed when the command ends.
func (c *CommandLine) OfTexts(paths []string) (string, error) {
	defer c.Working("reading the texts")()
	var files []pasted.File
	left := int64(pasted.MaxBytes)
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return "", cli.Usagef("%s is named twice: leave it out once", path)
		}
		text, err := c.text(path, left)
		if err != nil {
			return "", cli.Usage(err)
		}
		left -= int64(len(text))
		files = append(files, pasted.File{Name: path, Text: text})
	}
	dir, bytes, err := c.ScratchPlace()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "texts.slowpath")
	rec, err := recording.Create(path, min(bytes, recording.DefaultMaxDisk))
	if err != nil {
		return "", err
	}
	_, err = pasted.Read(files, c.Version, rec)
	err = errors.Join(err, rec.Close())
	if errors.Is(err, pasted.ErrNothing) {
		return "", cli.Usagef("%s: %w; paste what redis-cli printed", namesOf(paths), err)
	}
	return path, err
}

// text reads a file of at most so many bytes.
func (c *CommandLine) text(path string, most int64) ([]byte, error) {
	if path != "-" {
		return cli.ReadNamed(path, most)
	}
	text, err := io.ReadAll(io.LimitReader(c.Stdin, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("the text has more than %s: paste less of it", format.Bytes(most))
	}
	return text, err
}

func namesOf(paths []string) string {
	name := paths[0]
	if n := len(paths) - 1; n > 0 {
		name += " and " + format.Count(n, "more file")
	}
	return name
}
