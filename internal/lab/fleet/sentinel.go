package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"slowpath/internal/lab/servers"
)

// SentinelMaster is the name of the master for sentinels of the lab.
const SentinelMaster = "mymaster"

// StartSentinel starts a single sentinel (quorum 1) for a master, and waits until it knows the number of replicas. It
// considers the master down after one second. Without a deadline in ctx it waits 30 s. On error
// nothing is left.
func (f *Fleet) StartSentinel(ctx context.Context, bin servers.Binary, master *Instance, replicas int) (*Instance,
	error,
) {
	ctx, cancel := withDefaultTimeout(ctx, startTimeout)
	defer cancel()
	i, err := f.start(ctx, bin, Spec{sentinelOf: &master.Info}, newGroup(), "sentinel")
	if err != nil {
		return nil, err
	}
	err = poll(ctx, clusterPoll, func() (bool, error) {
		reply, err := i.Do(ctx, "SENTINEL", "MASTER", SentinelMaster)
		fields, _ := reply.([]any)
		for k := 0; k+1 < len(fields); k += 2 {
			if fields[k] == "num-slaves" {
				return fields[k+1] == strconv.Itoa(replicas), err
			}
		}
		return false, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the sentinel %s to find %d replicas: %w; %s", i.Addr, replicas,
			err, i.logTail()), i.Stop(context.WithoutCancel(ctx)))
	}
	return i, nil
}

// sentinelConfig is the sentinel.conf, which the sentinel itself writes to later.
func (s Spec) sentinelConfig(i Info) string {
	host, port, _ := net.SplitHostPort(s.sentinelOf.Addr) // an address of this package
	return fmt.Sprintf("bind %s\nport %d\ndir %s\nprotected-mode no\ndaemonize no\nlogfile \"\"\nsentinel monitor "+
		"%[4]s %s %s 1\n"+
		"sentinel down-after-milliseconds %[4]s 1000\nsentinel failover-timeout %[4]s 5000\n", s.bind(), i.Port,
		quote(i.Dir), SentinelMaster, host, port)
}
