//go:build linux

package tap

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// counts is what the programs count and number, and the clocks of threads.
type counts interface {
	counter(number int) (uint64, error)
	histogram(key uint32, of *kernelHist) error
	operations(key uint32, of *kernelHist) error
	eachEnded(yield func(pid uint32, w *kernelProcessWaits))
	eachPeer(yield func(kernelPeerKey, kernelPeer))
	eachSystemCall(yield func(kernelSleepKey, kernelSleeps))
	eachOp(yield func(kernelOpKey, uint32))
	eachError(yield func(kernelErrorKey, uint64))
	eachThread(yield func(*kernelThread))
}

// mapReader reads them from the programs' maps.
type mapReader struct {
	maps map[string]*ebpf.Map
	// memory of one reading, by CPU
	hists  []kernelHist
	values []uint64
}

func newMapReader(maps map[string]*ebpf.Map) (*mapReader, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("counting the CPUs: %w", err)
	}
	return &mapReader{maps, make([]kernelHist, cpus), make([]uint64, cpus)}, nil
}

func (m *mapReader) counter(number int) (sum uint64, err error) {
	if err := readPerCPU(m.maps[kernelMapCounters], uint32(number), m.values); err != nil {
		return 0, err
	}
	for _, v := range m.values {
		sum += v
	}
	return sum, nil
}

func (m *mapReader) histogram(key uint32, of *kernelHist) error {
	if err := readPerCPU(m.maps[kernelMapHists], key, m.hists); err != nil {
		return err
	}
	*of = kernelHist{}
	for i := range m.hists {
		for step, n := range m.hists[i].N {
			of.N[step] += n
		}
	}
	return nil
}

func (m *mapReader) operations(key uint32, of *kernelHist) error {
	return m.maps[kernelMapOperations].Lookup(key, of)
}

func (m *mapReader) eachPeer(yield func(kernelPeerKey, kernelPeer)) {
	var k kernelPeerKey
	var p kernelPeer
	for it := m.maps[kernelMapPeers].Iterate(); it.Next(&k, &p); {
		yield(k, p)
	}
}

func (m *mapReader) eachSystemCall(yield func(kernelSleepKey, kernelSleeps)) {
	var k kernelSleepKey
	var s kernelSleeps
	for it := m.maps[kernelMapSystemCalls].Iterate(); it.Next(&k, &s); {
		yield(k, s)
	}
}

func (m *mapReader) eachEnded(yield func(pid uint32, w *kernelProcessWaits)) {
	var pid uint32
	var w kernelProcessWaits
	for it := m.maps[kernelMapEndedWaits].Iterate(); it.Next(&pid, &w); {
		yield(pid, &w)
	}
}

func (m *mapReader) eachOp(yield func(kernelOpKey, uint32)) {
	var k kernelOpKey
	var op uint32
	for it := m.maps[kernelMapOps].Iterate(); it.Next(&k, &op); {
		yield(k, op)
	}
}

func (m *mapReader) eachError(yield func(kernelErrorKey, uint64)) {
	var k kernelErrorKey
	var count uint64
	for it := m.maps[kernelMapErrors].Iterate(); it.Next(&k, &count); {
		yield(k, count)
	}
}

func (m *mapReader) eachThread(yield func(*kernelThread)) {
	var th kernelThread
	for slot := range uint32(kernelLimitTHREADS) {
		if m.maps[kernelMapThreads].Lookup(slot, &th) != nil || th.Tid == 0 {
			return // they are given out in order
		}
		yield(&th)
	}
}

// readPerCPU reads the values of a map by CPU, of which there are as many as ebpf.PossibleCPU says. The library makes
// the memory for them anew each time, twice: on a host of 64 CPUs half a megabyte for one command.
func readPerCPU[V uint64 | kernelHist](m *ebpf.Map, key uint32, per []V) error {
	if cpus, err := ebpf.PossibleCPU(); err != nil || cpus != len(per) {
		return fmt.Errorf("room for %d of %d CPUs", len(per), cpus)
	}
	attr := struct { // union bpf_attr of BPF_MAP_LOOKUP_ELEM
		fd, _      uint32
		key, value unsafe.Pointer
		flags      uint64
	}{fd: uint32(m.FD()), key: unsafe.Pointer(&key), value: unsafe.Pointer(unsafe.SliceData(per))}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_ELEM, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr))
	runtime.KeepAlive(m)
	if errno != 0 {
		return errno
	}
	return nil
}
