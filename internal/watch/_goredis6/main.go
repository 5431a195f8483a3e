// Command goredis6 calls GET without end through go-redis v6.15.9, as many services of 2018 to 2020 do, and has net/http/pprof. It prints the
// address of that and ends when its standard input is closed.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strings"

	"github.com/go-redis/redis"
)

func main() {
	cluster := flag.String("cluster", "", "addresses of its nodes")
	single := flag.String("single", "", "address of a server")
	workers := flag.Int("workers", 30, "callers side by side")
	pool := flag.Int("pool", 0, "PoolSize")
	flag.Parse()
	runtime.SetMutexProfileFraction(10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, nil)) }()
	var client redis.Cmdable = redis.NewClient(&redis.Options{Addr: *single, PoolSize: *pool})
	if *cluster != "" {
		client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(*cluster, ","), PoolSize: *pool})
	}
	for range *workers {
		go func() {
			for {
				client.Get("key")
			}
		}()
	}
	fmt.Println(listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
