// Package series declares the series of samples: what each is named in a recording, which source writes it, about
// what, and in which unit. What writes a series and what reads it use the same declaration.
package series

// Values of the column source.
const (
	SourceServer = "server"
	SourceHost   = "host"
	SourceTap    = "tap"
)

// Subjects of series that are not about a node, and what the subjects of others begin with.
const (
	SubjectMachine = "machine"
	SubjectSelf    = "self"
	CgroupPrefix   = "cgroup:"
	ProcessPrefix  = "process:"
	ConnPrefix     = "conn:"
)

// Name is a series of samples.
type Name struct {
	Source  string
	Subject string // empty: the address of a node; one that ends in a colon: with the path, pid or address after it
	Name    string
	Unit    Unit
}

// Unit is that of the values of a series.
type Unit string

// Units.
const (
	Count        Unit = "" // also numbers of things, and flags
	Bytes        Unit = "bytes"
	Share        Unit = "share" // 0..1
	Percent      Unit = "%"
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
	Nanoseconds  Unit = "ns"
)

// Ns is a value of a series of times in nanoseconds.
func (n Name) Ns(value float64) float64 {
	switch n.Unit {
	case Seconds:
		return value * 1e9
	case Milliseconds:
		return value * 1e6
	case Microseconds:
		return value * 1e3
	}
	return value
}

// Seconds is a value of a series of times in seconds.
func (n Name) Seconds(value float64) float64 {
	switch n.Unit {
	case Milliseconds:
		return value / 1e3
	case Microseconds:
		return value / 1e6
	case Nanoseconds:
		return value / 1e9
	}
	return value
}

// About is the subject of the series where it is about one of several: a node's address, the path of a cgroup, the id
// of a process, the client's end of a connection.
func (n Name) About(which string) string {
	if n.Subject == SubjectMachine || n.Subject == SubjectSelf {
		return n.Subject
	}
	return n.Subject + which
}
