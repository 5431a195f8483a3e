package tap

// The programs are compiled with `make bpf` (clang-19 and libbpf-dev of Debian 12); the result is committed, so that
// building needs neither. A test compares bpf/SUM with the sources.

//go:generate go tool bpf2go -cc clang-19 -target amd64,arm64 -go-package tap -type call_event -type item_event -type offcpu_event -type conn_event -type retrans_event -type acked_event -type inner_event -type lookup_event -type glance -type addr -type item -type pair -type clocks -type hist -type op_key -type node_key kernel bpf/tap.bpf.c -- -O2 -mcpu=v3 -Wall -Wno-unused-function -I/usr/include
//go:generate sh -c "cat gen.go bpf/*.h bpf/*.c | sha256sum | cut -d' ' -f1 >bpf/SUM"
