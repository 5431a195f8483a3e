package symbol

import (
	"bytes"
	"io"

	"slowpath/internal/source/hostfs"
)

// vdso is the code that the kernel maps into each process: it is the same in all of them.
func vdso(fs hostfs.FS) (io.ReaderAt, bool) {
	maps, err := readMaps(fs, "/proc/self/maps")
	if err != nil {
		return nil, false
	}
	for _, m := range maps {
		if m.Path != "[vdso]" || m.End-m.Start > 1<<20 {
			continue
		}
		mem, err := fs.Open("/proc/self/mem")
		if err != nil {
			return nil, false
		}
		defer mem.Close()
		image := make([]byte, m.End-m.Start)
		if _, err := io.ReadFull(io.NewSectionReader(mem, int64(m.Start), int64(len(image))), image); err != nil {
			return nil, false
		}
		return bytes.NewReader(image), true
	}
	return nil, false
}
