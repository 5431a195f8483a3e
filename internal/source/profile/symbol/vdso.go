package symbol

import (
	"bytes"
	"io"
	"os"
)

// vdso is the code that the kernel maps into each process: that of this process is that of all others.
func vdso() (io.ReaderAt, bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	maps, err := ParseMaps(f)
	if err != nil {
		return nil, false
	}
	for _, m := range maps {
		if m.Path != "[vdso]" || m.End-m.Start > 1<<20 {
			continue
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, false
		}
		defer mem.Close()
		image := make([]byte, m.End-m.Start)
		if _, err := mem.ReadAt(image, int64(m.Start)); err != nil {
			return nil, false
		}
		return bytes.NewReader(image), true
	}
	return nil, false
}
