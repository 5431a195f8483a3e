// Package matrix measures client libraries against server versions, each pair standalone and in a cluster: how many
// calls, how late, what limited them, and what doctor finds. Both ends are real programs, which the lab starts.
package matrix

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Schema names the JSON of a Matrix (docs/json.md).
const Schema = "slowpath.matrix/v1"

// Topologies.
const (
	Standalone = "standalone"
	Cluster    = "cluster"
)

// Topologies lists them in the order of a matrix.
func Topologies() []string { return []string{Standalone, Cluster} }

// Matrix is the cells that were measured, all in the same way.
type Matrix struct {
	Schema      string    `json:"schema"`
	Version     string    `json:"version"` // of this program
	Start       time.Time `json:"start"`   // of its first run, if it was resumed
	CPUs        int       `json:"cpus"`    // of the machine, on which client, servers and doctor run together
	Settings    Settings  `json:"settings"`
	Interrupted bool      `json:"interrupted"` // cells are missing
	Cells       []Cell    `json:"cells"`
}

// New is a matrix without cells.
func New(version string, s Settings) *Matrix {
	return &Matrix{
		Schema: Schema, Version: version, Start: time.Now().UTC(), CPUs: runtime.NumCPU(), Settings: s, Cells: []Cell{},
	}
}

// Settings is how each cell is measured. Cells can be held against each other where it is the same.
type Settings struct {
	Quick    bool          `json:"quick"`
	HTTP     bool          `json:"http"`        // calls come through the client's HTTP service
	Workers  int           `json:"workers"`     // callers side by side; with HTTP, connections to the service
	Keys     int           `json:"keys"`        // that the calls spread over
	Warmup   time.Duration `json:"warmup_ns"`   // calls of this time are not counted
	Duration time.Duration `json:"duration_ns"` // how long calls are counted; doctor watches another load after that
	Watch    time.Duration `json:"watch_ns"`    // how long doctor watches; 0: it is not asked
	// WatchShare is how many of the calls per second that a pair reached are made while doctor watches; 0: as many as
	// it can, by an older version.
	WatchShare float64 `json:"watch_share,omitempty"`
	Masters    int     `json:"masters"`  // of a cluster
	Replicas   int     `json:"replicas"` // of each
}

// Cell is one client against one server.
type Cell struct {
	Client            string  `json:"client"`
	Server            string  `json:"server"`
	Topology          string  `json:"topology"`
	Library           string  `json:"library,omitempty"` // with its version, as the program says
	Calls             int64   `json:"calls"`
	RequestsPerSecond float64 `json:"requests_per_second"` // those that succeeded
	MeanNs            int64   `json:"mean_ns,omitempty"`   // as the caller sees it, failed calls too; 0: not known
	P50Ns             int64   `json:"p50_ns"`
	P99Ns             int64   `json:"p99_ns"`
	MaxNs             int64   `json:"max_ns"`
	Errors            int64   `json:"errors"`
	// ErrorKinds counts the errors by kind, as in slowpath.client/v1.
	ErrorKinds map[string]int64 `json:"errors_by_kind,omitempty"`
	LastError  string           `json:"last_error,omitempty"`
	LimitedBy  string           `json:"limited_by,omitempty"` // as in slowpath.bench/v1, with ByClientCPU
	// Finding is the cause that doctor named first, or its verdict where it found none. It is empty where doctor was
	// not asked.
	Finding     string   `json:"finding"`
	Confidence  float64  `json:"confidence,omitempty"`
	ExcessShare float64  `json:"excess_share,omitempty"`
	Others      []string `json:"other_findings,omitempty"`
	Unwatched   string   `json:"unwatched,omitempty"` // why doctor had no answer
	Empty       string   `json:"empty,omitempty"`     // why there are no figures
	// Again says that the reason lies in this machine, so that a matrix which is resumed tries again.
	Again   bool    `json:"again,omitempty"`
	Seconds float64 `json:"seconds"` // that the cell took
}

// ByClientCPU is limited_by the CPU time of the client program, which a load generator calls its own.
const ByClientCPU = "client-cpu"

// Is says whether both cells are the same pair in the same topology.
func (c Cell) Is(other Cell) bool {
	return c.Client == other.Client && c.Server == other.Server && c.Topology == other.Topology
}

// String names the cell.
func (c Cell) String() string { return c.Client + " on " + c.Server + ", " + c.Topology }

// Measured says whether calls succeeded.
func (c Cell) Measured() bool { return c.Empty == "" }

// Find returns the cell of the same pair.
func (m *Matrix) Find(c Cell) (Cell, bool) {
	for _, have := range m.Cells {
		if have.Is(c) {
			return have, true
		}
	}
	return c, false
}

// Put adds a cell, or replaces the one of the same pair.
func (m *Matrix) Put(c Cell) {
	for i, have := range m.Cells {
		if have.Is(c) {
			m.Cells[i] = c
			return
		}
	}
	m.Cells = append(m.Cells, c)
}

// Only is the matrix with the cells that are asked for, in their order.
func (m *Matrix) Only(asked []Cell) *Matrix {
	out := *m
	out.Cells = []Cell{}
	for _, c := range asked {
		if have, ok := m.Find(c); ok {
			out.Cells = append(out.Cells, have)
		}
	}
	out.Interrupted = len(out.Cells) < len(asked)
	return &out
}

// Summary is the matrix in a sentence: its slowest cell against its fastest.
func (m *Matrix) Summary() string {
	cells := slices.DeleteFunc(slices.Clone(m.Cells), func(c Cell) bool { return !c.Measured() })
	text := fmt.Sprintf("%d of %d cells have figures", len(cells), len(m.Cells))
	if len(cells) < 2 {
		return text + "."
	}
	order := func(a, b Cell) int { return cmp.Compare(a.RequestsPerSecond, b.RequestsPerSecond) }
	least, most := slices.MinFunc(cells, order), slices.MaxFunc(cells, order)
	text += fmt.Sprintf("; from %.0f calls per second (%s", least.RequestsPerSecond, least)
	if least.Finding != "" {
		text += ": " + least.Finding
	}
	return text + fmt.Sprintf(") to %.0f (%s).", most.RequestsPerSecond, most)
}
