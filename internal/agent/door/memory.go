//go:build !race

package door

// maxMemory of the process, in bytes.
const maxMemory = 256 << 20
