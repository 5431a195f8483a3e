package scenario

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/codis"
	"slowpath/internal/lab/fleet"
)

const codisBigKey = "followers" // in lowerSlots

// lowerSlots are those of the first of two servers.
var lowerSlots = codis.Range{First: 0, Last: codis.Slots/2 - 1}

// codis starts a stand-in for Codis over two servers, of which the first has a big hash, and a client that reads small
// values through it, and now and then a field of the hash.
func (l *Lab) codis(ctx context.Context) (servers []*fleet.Instance, proxy *fleet.Instance, err error) {
	for range 2 {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return nil, nil, err
		}
		servers = append(servers, s)
	}
	if proxy, err = l.Fleet.StartCodis(ctx, servers...); err != nil {
		return nil, nil, err
	}
	l.Defer(proxy.Stop)
	keys, read := []string{codisBigKey}, codisBigKey
	if l.Fixed("split-big-keys") {
		keys, read = partsOf("{"+codisBigKey+"}"), "{"+codisBigKey+"}:{n}"
	}
	for _, key := range keys {
		if err := fillHash(ctx, servers[0], key, 300_000/len(keys)); err != nil {
			return nil, nil, err
		}
	}
	if err := fillDocuments(ctx, proxy, Documents, 3); err != nil {
		return nil, nil, err
	}
	return servers, proxy, l.Client(ctx, ClientSpec{
		Program: clients.Redigo,
		Options: clients.Options{
			Addresses: []string{proxy.Addr}, Keys: Documents, Workers: 10, PoolSize: 10, MaxIdle: 10, Rate: 1500,
			Commands: []clients.Command{
				{Args: []string{"GET", "doc:{n}"}, Weight: 19},
				{Args: []string{"HGET", read, "field:{n}"}},
			},
		},
	})
}
