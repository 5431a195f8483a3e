package fleet

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

func TestClusterOfOtherServers(t *testing.T) {
	needs.Long(t)
	for _, name := range []servers.Name{servers.Redis506, servers.Redis802} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			testCluster(t, name, 3, 1, Spec{})
		})
	}
}
