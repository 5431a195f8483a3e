package tap

//go:generate go tool bpf2go -cc clang-19 -target amd64,arm64 -go-package tap -type call_event -type item_event -type offcpu_event -type conn_event -type retrans_event -type addr -type item -type pair -type clocks -type hist -type op_key kernel bpf/tap.bpf.c -- -O2 -mcpu=v3 -Wall -Wno-unused-function -I/usr/include
