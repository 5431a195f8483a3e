package traffic

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// Mixed is mostly GET and SET of small values, and some counters, hashes and lists, over a number of keys.
func Mixed(keys int) func(*rand.Rand, int) []string {
	value := strings.Repeat("x", 200)
	return func(r *rand.Rand, _ int) []string {
		k := "lab:" + strconv.Itoa(r.IntN(keys))
		switch p := r.IntN(100); {
		case p < 60:
			return []string{"GET", k}
		case p < 80:
			return []string{"SET", k, value[:50+r.IntN(150)]}
		case p < 87:
			return []string{"INCR", k + ":n"}
		case p < 93:
			return []string{"HSET", k + ":h", strconv.Itoa(r.IntN(20)), "v"}
		case p < 97:
			return []string{"LPUSH", "lab:list", "x"}
		default:
			return []string{"LTRIM", "lab:list", "0", "100"}
		}
	}
}

// Get reads random keys that may exist.
func Get(keys int) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, _ int) []string { return []string{"GET", "lab:" + strconv.Itoa(r.IntN(keys))} }
}

// Set writes random keys with values of a size in bytes.
func Set(keys, bytes int) func(*rand.Rand, int) []string {
	value := strings.Repeat("v", bytes)
	return func(r *rand.Rand, _ int) []string { return []string{"SET", "lab:" + strconv.Itoa(r.IntN(keys)), value} }
}

// Always sends the same command.
func Always(args ...string) func(*rand.Rand, int) []string {
	return func(*rand.Rand, int) []string { return args }
}
