package facts

import "strconv"

// Config is a parameter of CONFIG GET; ok is false where it was forbidden or does not exist.
func (n *Node) Config(name string) (value string, ok bool) {
	value, ok = n.config[name]
	return value, ok
}

// ConfigInt is a parameter of CONFIG GET as a number; 0 where it is unknown.
func (n *Node) ConfigInt(name string) int {
	text, _ := n.Config(name)
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return v
}

// IdleLimitNs is the server's parameter timeout in nanoseconds; 0 where it has none, or it is unknown.
func (n *Node) IdleLimitNs() int64 {
	text, _ := n.Config("timeout")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return seconds * 1e9
}
