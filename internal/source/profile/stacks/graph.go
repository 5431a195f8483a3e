package stacks

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Node is a frame of a flame graph: all stacks that have the same frames from the outermost to it.
type Node struct {
	Name  string
	Value int64 // of the stacks through it
	Below []*Node
	by    map[string]*Node
}

// Graph adds one column of a profile up to a tree. Below are sorted by name, so that graphs of one program are alike.
func Graph(p *Profile, column int) *Node {
	root := &Node{Name: "all"}
	for _, s := range p.Stacks {
		if column < 0 || column >= len(s.Values) || s.Values[column] <= 0 {
			continue
		}
		root.add(s.Frames, s.Values[column])
	}
	root.sort()
	return root
}

func (n *Node) add(frames []string, value int64) {
	n.Value += value
	for _, f := range frames {
		next := n.by[f]
		if next == nil {
			next = &Node{Name: f}
			if n.by == nil {
				n.by = map[string]*Node{}
			}
			n.by[f] = next
			n.Below = append(n.Below, next)
		}
		next.Value += value
		n = next
	}
}

func (n *Node) sort() {
	slices.SortFunc(n.Below, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, b := range n.Below {
		b.sort()
	}
}

// Collapse writes one column as collapsed stacks, the input of flamegraph.pl and speedscope: frames with ";" between, a
// space, the value.
func Collapse(w io.Writer, p *Profile, column int) error {
	out := bufio.NewWriter(w)
	sums := map[string]int64{}
	clean := strings.NewReplacer(";", ":", "\n", " ", "\r", " ")
	for _, s := range p.Stacks {
		if column < 0 || column >= len(s.Values) || s.Values[column] <= 0 {
			continue
		}
		frames := make([]string, len(s.Frames))
		for i, f := range s.Frames {
			frames[i] = clean.Replace(f)
		}
		sums[strings.Join(frames, ";")] += s.Values[column]
	}
	lines := make([]string, 0, len(sums))
	for stack := range sums {
		lines = append(lines, stack)
	}
	slices.Sort(lines)
	for _, stack := range lines {
		fmt.Fprintf(out, "%s %d\n", stack, sums[stack])
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing collapsed stacks: %w", err)
	}
	return nil
}

// Find is the frame of a name directly below, nil where there is none. A nil node has none.
func (n *Node) Find(name string) *Node {
	if n == nil {
		return nil
	}
	return n.by[name]
}

// Function is what a profile says of one function, wherever it was called from.
type Function struct {
	Name string
	Own  int64 // of the stacks that end in it
	All  int64 // of the stacks that it is in, each counted once
}

// Top gives the functions in which most stacks end, most first.
func Top(p *Profile, column, n int) []Function {
	by := map[string]*Function{}
	for _, s := range p.Stacks {
		if column < 0 || column >= len(s.Values) || s.Values[column] <= 0 {
			continue
		}
		seen := map[string]bool{}
		for i, f := range s.Frames {
			if by[f] == nil {
				by[f] = &Function{Name: f}
			}
			if !seen[f] {
				seen[f] = true
				by[f].All += s.Values[column]
			}
			if i == len(s.Frames)-1 {
				by[f].Own += s.Values[column]
			}
		}
	}
	var out []Function
	for _, f := range by {
		if f.Own > 0 {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Own, a.Own), cmp.Compare(b.All, a.All), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), n)]
}
