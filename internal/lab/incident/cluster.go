package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
)

// Cluster runs a cluster for the incident, with so many masters and replicas for each.
func (l *Lab) Cluster(ctx context.Context, masters, replicas int, spec fleet.Spec) (*fleet.Cluster, error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, err
	}
	c, err := l.Fleet.StartCluster(ctx, bin, masters, replicas, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(c.Stop)
	return c, nil
}
