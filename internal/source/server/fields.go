package server

// Fields are those of an INFO reply: numbers and texts by name. A structured field gives one entry per part:
// "cmdstat_get.calls", "cmdstat_get.usec".
type Fields struct {
	Numbers map[string]float64
	Text    map[string]string
}

// ParseInfo reads INFO of any version, bounded in size. Lines that are not "name:value", and fields that are not
// recorded, are skipped.
func ParseInfo(text string) Fields {
	in := parseInfo(text)
	return Fields{Numbers: in.numbers, Text: in.text}
}

// Product is the server's own name and version, such as "redis 7.0.15" or "valkey 8.1.1"; empty where INFO does not
// say.
func (f Fields) Product() string { return product(f.Text) }

// Command is what commandstats has of a command: calls and microseconds of the main thread. It is found by the name
// that Redis has for it from 7.0 on ("cluster|nodes"), else by that of its container ("cluster"); whole is true where
// the numbers are of all commands of the container.
func (f Fields) Command(name string) (calls, usec float64, whole, ok bool) {
	if calls, ok := f.Numbers["cmdstat_"+name+".calls"]; ok {
		return calls, f.Numbers["cmdstat_"+name+".usec"], false, true
	}
	st, ok := statOf(info{numbers: f.Numbers}, name)
	return st.calls, st.usec, true, ok
}
