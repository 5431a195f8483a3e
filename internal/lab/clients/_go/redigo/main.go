package main

import (
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"lab/clients"
)

// library is redigo.
type library struct{ pool *redis.Pool }

func open(w *workload) *library {
	options := []redis.DialOption{redis.DialPassword(w.Password), redis.DialClientName(w.Name), redis.DialDatabase(w.DB),
		redis.DialReadTimeout(w.ReadTimeout), redis.DialNetDial(func(network, addr string) (net.Conn, error) {
			w.dials.Add(1)
			return net.DialTimeout(network, addr, 30*time.Second) // the library's own default
		})}
	p := &redis.Pool{
		MaxActive: w.PoolSize, MaxIdle: w.MaxIdle, IdleTimeout: w.IdleLimit, Wait: w.PoolSize > 0,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", w.Address, options...) },
	}
	if w.TestOnBorrow {
		p.TestOnBorrow = func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		}
	}
	return &library{p}
}

func (l *library) worker() caller { return l }

// call borrows a connection and gives it back, as the library's documentation says.
func (l *library) call(args []any) (string, error) {
	c := l.pool.Get()
	defer c.Close()
	reply, err := c.Do(args[0].(string), args[1:]...) // commands have a name
	s, _ := reply.([]byte)
	return string(s), err
}

func (l *library) stats(s *clients.Summary) {
	p := l.pool.Stats()
	s.PoolWaits, s.PoolWait = p.WaitCount, p.WaitDuration
	_ = l.pool.Close()
}
