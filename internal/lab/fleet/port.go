package fleet

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
)

const (
	busOffset   = 10000 // a cluster node's bus listens on its port + 10000 (Redis CLUSTER_PORT_INCR)
	portCeiling = 55000 // so that the bus port stays below 65536
	portTries   = 1000
)

// ErrPort says that a port that was asked for cannot be used.
var ErrPort = errors.New("the port cannot be used")

// clusterPorts are the n ports from that of a spec on, which must be free together with their bus ports; n times 0
// where the spec has none.
func clusterPorts(s Spec, n int) ([]int, error) {
	ports := make([]int, n)
	if s.Port == 0 {
		return ports, nil
	}
	last := s.Port + n - 1
	if s.Port < 1 || last > math.MaxUint16-busOffset {
		return nil, fmt.Errorf("%w: %d nodes from %d on end at %d; give a first port from 1 to %d", ErrPort, n, s.Port,
			last, math.MaxUint16-busOffset-n+1)
	}
	for k := range ports {
		port := s.Port + k
		for _, own := range []int{port, port + busOffset} {
			l, err := net.Listen("tcp", net.JoinHostPort(s.bind(), strconv.Itoa(own)))
			if err != nil {
				return nil, fmt.Errorf("%w: %w (the node on port %d has its bus on %d); give another first port, or "+
					"none", ErrPort, err, port, port+busOffset)
			}
			defer l.Close()
		}
		ports[k] = port
	}
	return ports, nil
}

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
