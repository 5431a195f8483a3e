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

// NodeTimeoutMs is cluster-node-timeout in milliseconds, of any node that reports it; 0 where there is no cluster.
func (n *Node) NodeTimeoutMs() int {
	if len(n.ClusterViews()) == 0 && n.SlotsBefore() == 0 {
		return 0
	}
	for _, one := range append([]*Node{n}, n.Nodes...) {
		if ms := one.ConfigInt("cluster-node-timeout"); ms > 0 {
			return ms
		}
	}
	return 0
}
