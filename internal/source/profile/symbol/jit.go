package symbol

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Bounds of the map that a just-in-time compiler writes: a long run of node has about 100 000 lines.
const (
	maxJITBytes = 64 << 20
	maxJITName  = 500
)

// parseJIT reads the map of a just-in-time compiler, /tmp/perf-PID.map: "START SIZE NAME" in each line, the numbers in
// hexadecimal (tools/perf/Documentation/jit-interface.txt). Of two lines for one address the later counts: code is
// moved. Malformed lines are left out: the last may be half written.
func parseJIT(r io.Reader) (table, error) {
	byStart := map[uint64]function{}
	lines := bufio.NewReader(io.LimitReader(r, maxJITBytes))
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		fields := strings.SplitN(strings.TrimRight(line, "\r\n"), " ", 3)
		if len(fields) != 3 || fields[2] == "" {
			continue
		}
		start, err1 := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 64)
		if err1 == nil && err2 == nil && size > 0 {
			byStart[start] = function{start: start, size: size, name: fields[2][:min(len(fields[2]), maxJITName)]}
		}
	}
	all := make([]function, 0, len(byStart))
	for _, f := range byStart {
		all = append(all, f)
	}
	return tableOf(all), nil
}
