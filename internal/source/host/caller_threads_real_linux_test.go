package host

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
)

// waysToWait are those of the threads of TestSleepReasons, each with its reason.
var waysToWait = map[string]sleepReason{
	"reads a reply": forReply, "polls for a reply": forReply, "waits for events": forEvents, "dials": forDial,
	"waits for a lock": forLock, "waits for a lock up to a time limit": forLimit, "sleeps": forTimer,
	"sleeps in poll": forTimer, "reads from a pipe": forOthers, "runs": awake, "asks another service": forPeer,
	"polls another service": forPeer,
}

// waitForever waits in one of the ways, over a connection of its own to the server.
func waitForever(way string, server, service, silent unix.Sockaddr) {
	runtime.LockOSThread()
	conn, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if way == "asks another service" || way == "polls another service" {
		server = service
	}
	if err == nil && way != "dials" {
		if err = unix.Connect(conn, server); err == nil {
			_, err = unix.Write(conn, []byte("PING\r\n"))
		}
	}
	var pipe [2]int
	epoll, err2 := unix.EpollCreate1(0)
	if err != nil || err2 != nil || unix.Pipe(pipe[:]) != nil ||
		unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, conn, &unix.EpollEvent{Events: unix.EPOLLIN}) != nil {
		panic(fmt.Sprint(err, err2))
	}
	fmt.Printf("%d %s\n", unix.Gettid(), way)
	hour := unix.Timespec{Sec: 3600}
	var word uint32
	futex := func(limit *unix.Timespec) {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), 0, 0, uintptr(unsafe.Pointer(limit)),
			0, 0)
	}
	for {
		switch way {
		case "reads a reply", "asks another service":
			_, _ = unix.Read(conn, make([]byte, 1))
		case "polls for a reply", "polls another service":
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(conn), Events: unix.POLLIN}}, -1)
		case "waits for events":
			_, _ = unix.EpollWait(epoll, make([]unix.EpollEvent, 1), -1)
		case "dials":
			_ = unix.Connect(conn, silent)
		case "waits for a lock":
			futex(nil)
		case "waits for a lock up to a time limit":
			futex(&hour)
		case "sleeps":
			_ = unix.Nanosleep(&hour, nil)
		case "sleeps in poll":
			_, _ = unix.Poll(nil, 3600_000)
		case "reads from a pipe":
			_, _ = unix.Read(pipe[0], make([]byte, 1))
		}
	}
}

// silentAt listens at an address and accepts nothing: dials to it stay without an answer.
func silentAt(t *testing.T, at *unix.SockaddrInet4) {
	t.Helper()
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(l) })
		if err = unix.Bind(l, at); err == nil {
			err = unix.Listen(l, 0)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // its queue holds one
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(c) })
		_ = unix.Connect(c, at)
	}
}

// TestSleepReasons: threads of a real process that wait in each way are seen to wait so, those at the server are seen
// to call, and where their time went is recorded.
func TestSleepReasons(t *testing.T) {
	needs.Real(t)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	node := l.Addr().(*net.TCPAddr).AddrPort()
	silent := &unix.SockaddrInet4{Port: int(node.Port()), Addr: [4]byte{127, 0, 0, 2}}
	service := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 3}}
	if ports := os.Getenv("SLOWPATH_TEST_WAIT_FOREVER"); ports != "" {
		_, _ = fmt.Sscan(ports, &silent.Port, &service.Port)
		for way := range waysToWait {
			go waitForever(way, &unix.SockaddrInet4{Port: silent.Port, Addr: [4]byte{127, 0, 0, 1}}, service, silent)
		}
		select {}
	}
	silentAt(t, silent)
	other := belowEphemeral(t)
	service.Port = other.Port
	child := exec.Command(os.Args[0], "-test.run=^TestSleepReasons$")
	child.Env = append(os.Environ(), fmt.Sprintf("SLOWPATH_TEST_WAIT_FOREVER=%d %d", node.Port(), other.Port))
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	ways := map[int]string{}
	for lines := bufio.NewScanner(out); len(ways) < len(waysToWait) && lines.Scan(); {
		tid, way := 0, ""
		if _, err := fmt.Sscanf(lines.Text(), "%d %s", &tid, &way); err == nil {
			ways[tid] = lines.Text()[len(fmt.Sprint(tid))+1:]
		}
	}
	m := &memory{}
	nodes := map[netip.AddrPort]string{node: "it"}
	c, err := newCallerThreads(CallersOptions{Clock: clock.New(), Sink: m, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	seen, asked := map[string]sleepReason{}, false
	await.UntilOr(t, func() bool {
		c.round()
		p := c.processes[child.Process.Pid]
		if p == nil {
			return false
		}
		calls := 0
		for tid, way := range ways {
			if th := p.threads[tid]; th != nil {
				seen[way] = th.reason
				asked = asked || way == "polls another service" && len(th.outside) > 0 &&
					th.outside[0].Address == other.String()
				if th.calls {
					calls++
				}
			}
		}
		return maps.Equal(seen, waysToWait) && asked && calls >= 4 && p.waits().RedisNs > 0 && p.waits().DialNs > 0
	}, func() string { return fmt.Sprintf("all are seen to wait as they do: %v", seen) })
	c.finish()
	if all := m.waits(); len(all) == 0 || all[len(all)-1].Others == 0 {
		t.Errorf("%+v", all)
	}
}

// belowEphemeral is the address of a service, whose port is below those that callers get.
func belowEphemeral(t *testing.T) *net.TCPAddr {
	t.Helper()
	for port := 20_000; port < 30_000; port++ {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: port})
		if err == nil {
			t.Cleanup(func() { l.Close() })
			return l.Addr().(*net.TCPAddr)
		}
	}
	t.Fatal("no port is free")
	return nil
}
