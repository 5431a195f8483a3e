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
	v, _ := strconv.Atoi(text)
	return v
}

// IdleLimitNs is the server's parameter timeout in nanoseconds; 0 where it has none, or it is unknown.
func (n *Node) IdleLimitNs() int64 { return int64(n.ConfigInt("timeout")) * 1e9 }
