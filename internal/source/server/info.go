package server

import (
	"strconv"
	"strings"
)

// Bounds of an INFO reply. A large deployment has about 1 000 fields in 60 KB.
const (
	maxInfoFields    = 20_000
	maxInfoLineBytes = 4096
	maxTextBytes     = 256
)

// info is an INFO reply: numbers in the order of the reply, and texts. A structured field such as
// "cmdstat_get:calls=1,usec=4" gives one entry per part, "cmdstat_get.calls" and "cmdstat_get.usec".
type info struct {
	fields  []field
	numbers map[string]float64
	text    map[string]string
}

// field is a number of INFO by the name of its sample.
type field struct {
	name  string
	value float64
}

// parseInfo reads the text of INFO or CLUSTER INFO of any version. Lines that are not "name:value" are skipped.
func parseInfo(text string) info {
	in := info{numbers: map[string]float64{}, text: map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || line[0] == '#' || len(line) > maxInfoLineBytes || ignored(name) {
			continue
		}
		if len(in.fields)+len(in.text) >= maxInfoFields {
			break
		}
		if strings.Contains(value, "=") {
			in.addParts(name, value)
		} else {
			in.add(name, value)
		}
	}
	return in
}

// ignored are the fields that are not recorded: paths of the server's host, human-readable copies of other fields,
// values that change at each poll and mean nothing, and histograms of key sizes (Redis 8).
func ignored(name string) bool {
	switch name {
	case "executable", "config_file", "lru_clock", "uptime_in_days", "redis_git_sha1", "redis_git_dirty", "module":
		return true
	}
	return strings.HasSuffix(name, "_human") || strings.HasSuffix(name, "_perc") && !strings.HasPrefix(name,
		"current_") && name != "expired_stale_perc" ||
		strings.HasPrefix(name, "listener") || strings.Contains(name, "_distrib_")
}

// addParts adds a structured field. The average usec_per_call is left out: over a watch it is the quotient of two
// differences.
func (in *info) addParts(name, value string) {
	for part := range strings.SplitSeq(value, ",") {
		if k, v, ok := strings.Cut(part, "="); ok && k != "" && k != "usec_per_call" {
			in.add(name+"."+k, v)
		}
	}
}

func (in *info) add(name, value string) {
	if n, ok := parseNumber(value); ok && !isIdentifier(name) {
		if _, twice := in.numbers[name]; !twice {
			in.numbers[name] = n
			in.fields = append(in.fields, field{name, n})
		}
		return
	}
	in.text[strings.Clone(name)] = strings.Clone(value[:min(len(value), maxTextBytes)]) // not all of the reply stays
}

// isIdentifier recognises names whose value is text even where it happens to be all digits.
func isIdentifier(name string) bool {
	return name == "run_id" || strings.Contains(name, "replid") || strings.HasSuffix(name, "_id") &&
		name != "process_id" ||
		strings.HasSuffix(name, "_version") || strings.HasSuffix(name, ".ip") || name == "master_host"
}

// parseNumber reads a decimal number; not inf, nan, hexadecimal or underscores, which strconv.ParseFloat takes too.
func parseNumber(s string) (float64, bool) {
	if s == "" || len(s) > 32 || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// merge adds the fields of another reply to the same poll, CLUSTER INFO's to INFO's.
func (in *info) merge(other info) {
	for _, f := range other.fields {
		if _, twice := in.numbers[f.name]; !twice {
			in.numbers[f.name] = f.value
			in.fields = append(in.fields, f)
		}
	}
	for k, v := range other.text {
		if _, twice := in.text[k]; !twice {
			in.text[k] = v
		}
	}
}
