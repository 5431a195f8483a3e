package sampler

// The program is compiled with `make bpf` (clang-19 and libbpf-dev of Debian 12); the result is committed, so that
// building needs neither. A test compares bpf/SUM with the sources.

//go:generate -command bpf2go go tool bpf2go -cc clang-19 -target amd64,arm64 -go-package sampler
//go:generate bpf2go clock bpf/sampler.bpf.c -- -O2 -mcpu=v3 -Wall -Wno-unused-function -I/usr/include
//go:generate sh -c "cat gen.go bpf/*.c ../../tap/bpf/kernel.h | sha256sum | cut -d' ' -f1 >bpf/SUM"
