package scenario

import (
	"context"
	"fmt"
	"strconv"

	"slowpath/internal/format"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/step"
)

func itoa(n int) string { return strconv.Itoa(n) }

// evalSteps runs a script for all of [0, n), in steps that are shorter than the server's script limit. ARGV[1] is the
// first and ARGV[2] the last index of a step; args follow.
func evalSteps(ctx context.Context, s *fleet.Instance, script string, n int, args ...string) error {
	const atOnce = 50_000
	for from := 0; from < n; from += atOnce {
		step.Say(ctx, "filling: %s of %s", format.Thousands(from), format.Thousands(n))
		cmd := append([]string{"EVAL", script, "0", itoa(from), itoa(min(from+atOnce, n) - 1)}, args...)
		if _, err := s.Do(ctx, cmd...); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// fillKeys makes n keys fill:0, fill:1, … with small values.
func fillKeys(ctx context.Context, s *fleet.Instance, n int) error {
	return evalSteps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SET','fill:'..i,'v') end", n)
}

// fillHash makes a hash of n small fields.
func fillHash(ctx context.Context, s *fleet.Instance, key string, n int) error {
	const script = "for i=ARGV[1],ARGV[2] do redis.call('HSET',ARGV[3],'field:'..i,'some value '..i) end"
	return evalSteps(ctx, s, script, n, key)
}

// fillBig makes n strings of a size in bytes.
func fillBig(ctx context.Context, s *fleet.Instance, prefix string, n, bytes int) error {
	for i := range n {
		step.Say(ctx, "filling: %d of %d big values", i, n)
		if _, err := s.Do(ctx, "EVAL", "redis.call('SET',ARGV[1],string.rep('0123456789abcdef',ARGV[2]))", "0",
			prefix+itoa(i), itoa(bytes/16)); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}
