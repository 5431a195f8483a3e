package sampler

// The program is compiled with `make bpf` (clang-19 and libbpf-dev of Debian 12); the result is committed, so that
// building needs neither. A test compares bpf/SUM with the sources.

//go:generate bpf/generate
