package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// CSV writes the seconds of a load as lines of comma-separated values, while it runs. The columns are the fields of
// Second, by their JSON names.
type CSV struct {
	w   *csv.Writer
	err error
}

// NewCSV writes the header.
func NewCSV(w io.Writer) *CSV {
	c := &CSV{w: csv.NewWriter(w)}
	var names []string
	typ := reflect.TypeFor[Second]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	c.write(names)
	return c
}

// Second writes a line.
func (c *CSV) Second(s Second) {
	var cells []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		cells = append(cells, fmt.Sprint(v.Field(i).Interface()))
	}
	c.write(cells)
}

func (c *CSV) write(cells []string) {
	_ = c.w.Write(cells) // Error returns it
	c.w.Flush()
	if c.err == nil {
		c.err = c.w.Error()
	}
}

// Err is the first error of a write.
func (c *CSV) Err() error { return c.err }
