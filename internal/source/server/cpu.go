package server

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
)

// CPU is the CPU time of a server since it began, as INFO has it.
type CPU struct {
	Process time.Duration // all its threads, without children
	Main    time.Duration // its main thread; 0 before Redis 6.2, which does not have it
}

// AskCPU reads INFO cpu. A refusal is an error with a *resp.ServerError in its chain.
func AskCPU(ctx context.Context, s *session.Session) (CPU, error) {
	v, err := s.Do(ctx, "INFO", "cpu")
	if err != nil {
		return CPU{}, fmt.Errorf("asking the server for its CPU time: %w", err)
	}
	return cpuOf(v)
}

func cpuOf(v resp.Value) (CPU, error) {
	in := parseInfo(v.Text())
	seconds := func(names ...string) (d time.Duration) {
		for _, name := range names {
			d += time.Duration(min(max(in.numbers[name], 0), 1e9) * 1e9)
		}
		return d
	}
	c := CPU{Process: seconds("used_cpu_sys", "used_cpu_user"), Main: seconds("used_cpu_sys_main_thread",
		"used_cpu_user_main_thread")}
	if c.Process == 0 {
		return c, fmt.Errorf("INFO cpu of this server has no used_cpu_sys and used_cpu_user")
	}
	return c, nil
}
