package fleet

import (
	"fmt"
	"net"
	"strconv"
)

const (
	busOffset   = 10000 // a cluster node's bus listens on its port + 10000 (Redis CLUSTER_PORT_INCR)
	portCeiling = 55000 // so that the bus port stays below 65536
	portTries   = 1000
)

// freePorts finds n different ports below portCeiling which are free together with their bus ports. They may be taken
// again before a server starts on them.
func freePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var ports []int
	for range portTries + n {
		if len(ports) == n {
			return ports, nil
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		held = append(held, l)
		port := l.Addr().(*net.TCPAddr).Port
		if port >= portCeiling {
			continue
		}
		bus, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port+busOffset))
		if err != nil {
			continue
		}
		held = append(held, bus)
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("found %d of %d free ports below %d; widen net.ipv4.ip_local_port_range downwards",
		len(ports), n, portCeiling)
}
