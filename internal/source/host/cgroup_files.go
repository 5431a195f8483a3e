package host

import (
	"strconv"
	"strings"
)

// parseThrottleDevice reads blkio.throttle.*_device of cgroup v1: "8:0 1048576" per device.
func parseThrottleDevice(b []byte, name string, limits map[string]float64) {
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 {
			lower(limits, name, f[1])
		}
	}
}

// ioMaxNames are the keys of io.max of cgroup v2.
var ioMaxNames = map[string]string{"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}

// parseIOMax reads io.max: "8:0 rbps=max wbps=1048576 riops=max wiops=max".
func parseIOMax(b []byte, limits map[string]float64) {
	for line := range strings.Lines(string(b)) {
		for _, f := range strings.Fields(line) {
			key, value, _ := strings.Cut(f, "=")
			if name, ok := ioMaxNames[key]; ok {
				lower(limits, name, value)
			}
		}
	}
}

func lower(limits map[string]float64, name, text string) {
	v, err := strconv.ParseFloat(text, 64)
	if old, ok := limits[name]; err == nil && (!ok || v < old) {
		limits[name] = v
	}
}

// pressureTotals reads a PSI file: "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" (microseconds).
func pressureTotals(b []byte, visit func(kind string, us int64)) {
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(line, " ")
		_, total, ok := strings.Cut(rest, "total=")
		us, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
		if ok && err == nil && (kind == "some" || kind == "full") {
			visit(kind, us)
		}
	}
}
