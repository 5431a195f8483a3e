package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	busOffset = 10000 // a cluster node's bus listens on its port + 10000 (Redis CLUSTER_PORT_INCR)
	// Ports from portFloor to below portCeiling, and their bus ports, are below those that the kernel gives to
	// connections and listeners by default (net.ipv4.ip_local_port_range, 32768 to 60999): while a server restarts,
	// nobody else gets its port by chance.
	portFloor   = 10000
	portCeiling = 22000
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

// freePorts finds n different ports, by chance, which are free together with their bus ports. They may be taken again
// before a server starts on them.
func freePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var refused error // the last one
	hold := func(port int) bool {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			refused = err
			return false
		}
		held = append(held, l)
		return true
	}
	var ports []int
	for range portTries + n {
		if len(ports) == n {
			return ports, nil
		}
		if port := portFloor + rand.IntN(portCeiling-portFloor); hold(port) && hold(port+busOffset) {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("found %d of %d free ports from %d to %d (%w); stop what listens there", len(ports), n,
		portFloor, portCeiling-1, refused)
}
