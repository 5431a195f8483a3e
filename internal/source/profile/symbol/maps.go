package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"slowpath/internal/source/hostfs"
)

// Mapping is a part of a process's memory that holds code.
type Mapping struct {
	Start, End uint64 // [Start, End)
	Offset     uint64 // of Start in the file
	File       string // device and inode, by which two processes have the same
	// as the process sees it; "[vdso]", or empty for memory without a file, where just-in-time compilers put code
	Path string
}

// maxMappings with code bound the memory for one process.
const maxMappings = 20_000

// Errors of reading /proc/PID/maps.
var (
	ErrMaps     = errors.New("not a list of mappings")
	errTooLarge = fmt.Errorf("it has more than %d mappings with code, or %d MiB in /proc/PID/maps", maxMappings,
		hostfs.MaxFile>>20)
)

// readMaps reads a file as /proc/PID/maps. With errTooLarge it gives the first mappings.
func readMaps(fs hostfs.FS, name string) ([]Mapping, error) {
	f, err := fs.OpenRegular(name, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := &io.LimitedReader{R: f, N: hostfs.MaxFile}
	maps, err := parseMaps(text)
	if text.N == 0 { // the last line may be cut
		err = errTooLarge
	}
	return maps, err
}

// parseMaps gives the mappings of /proc/PID/maps that can be executed, in the order of the addresses. Its errors match
// ErrMaps, or are errTooLarge with the first mappings, or of the reader.
func parseMaps(r io.Reader) ([]Mapping, error) {
	var out []Mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m, runs, err := parseMapping(lines.Text())
		if err != nil {
			return out, err
		}
		if !runs || len(out) > 0 && m.Start < out[len(out)-1].End {
			continue
		}
		if len(out) == maxMappings {
			return out, errTooLarge
		}
		out = append(out, m)
	}
	return out, lines.Err()
}

// parseMapping reads "7f0c1000-7f0c2000 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6".
func parseMapping(line string) (m Mapping, runs bool, err error) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return m, false, fmt.Errorf("%w: %.80q", ErrMaps, line)
	}
	from, to, _ := strings.Cut(fields[0], "-")
	for text, value := range map[string]*uint64{from: &m.Start, to: &m.End, fields[2]: &m.Offset} {
		if *value, err = strconv.ParseUint(text, 16, 64); err != nil {
			return m, false, fmt.Errorf("%w: %.80q", ErrMaps, line)
		}
	}
	if len(fields) > 5 {
		m.Path = strings.TrimSuffix(line[strings.Index(line, fields[5]):], " (deleted)")
	}
	if fields[4] != "0" {
		m.File = fields[3] + ":" + fields[4]
	}
	return m, strings.Contains(fields[1], "x") && m.Start < m.End, nil
}
