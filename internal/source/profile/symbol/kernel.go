package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
)

// ErrHidden says that the kernel shows no addresses to this process.
var ErrHidden = errors.New("the kernel hides its addresses (kernel.kptr_restrict)")

// maxKernelSymbols is several times the number that a kernel with all of its modules has.
const maxKernelSymbols = 2_000_000

// Kernel is the functions of the running kernel. There are about 100 000, so their names are in one string.
type Kernel struct {
	starts []uint64
	ends   []uint32 // of each name in names
	names  string
}

// Kallsyms has the kernel's symbols. Whether it shows their addresses is decided when it is opened.
const Kallsyms = "/proc/kallsyms"

// ReadKernel reads Kallsyms from its beginning. Its error matches ErrHidden where addresses are not shown, or there is
// no file.
func ReadKernel(f *os.File) (*Kernel, error) {
	if f == nil {
		return nil, ErrHidden
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	return parseKernel(f)
}

// parseKernel reads lines as "ffffffff81000000 T _text	[module]".
func parseKernel(r io.Reader) (*Kernel, error) {
	var all []function
	lines := bufio.NewScanner(r)
	for lines.Scan() && len(all) < maxKernelSymbols {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || len(fields[1]) != 1 || !strings.Contains("tTwW", fields[1]) {
			continue
		}
		if start, err := strconv.ParseUint(fields[0], 16, 64); err == nil && start != 0 {
			all = append(all, function{start: start, name: fields[2]})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	if len(all) == 0 {
		return nil, ErrHidden
	}
	k := &Kernel{}
	var names strings.Builder
	for _, f := range tableOf(all) {
		names.WriteString(f.name)
		k.starts = append(k.starts, f.start)
		k.ends = append(k.ends, uint32(names.Len()))
	}
	k.names = names.String()
	return k, nil
}

// Function is the name of the function that an address is in; "?" where none is known.
func (k *Kernel) Function(addr uint64) string {
	i := sort.Search(len(k.starts), func(i int) bool { return k.starts[i] > addr }) - 1
	if i < 0 {
		return "?"
	}
	from := uint32(0)
	if i > 0 {
		from = k.ends[i-1]
	}
	return k.names[from:k.ends[i]]
}
