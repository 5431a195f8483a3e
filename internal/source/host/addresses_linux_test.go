package host

import (
	"fmt"
	"testing"
)

func TestAddresses(t *testing.T) {
	root := tree(t, map[string]string{"/proc/77/net/fib_trie": `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 172.17.0.0/16 2 0 2
           |-- 172.17.0.0
              /16 link UNICAST
           |-- 172.17.0.2
              /32 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
Local:
           |-- 172.17.0.2
              /32 host LOCAL
`})
	if got := fmt.Sprint(Addresses(root, 77)); got != "[172.17.0.2]" {
		t.Error(got)
	}
	if got := Addresses(root, 78); got != nil {
		t.Errorf("of a process that does not exist: %v", got)
	}
}
