package cli

import (
	"errors"
	"strconv"
	"strings"
)

// Size is a flag in bytes, as "64MB".
type Size int64

// SizeType is its name in the help.
const SizeType = "size"

// Units of a size. They are those of memory and of files alike: 1 MB is 1048576 bytes.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}, {"", 1}}

func (s *Size) String() string {
	n := int64(*s)
	for _, u := range []int{2, 1, 0} {
		if b := sizeUnits[u].bytes; n != 0 && n%b == 0 {
			return strconv.FormatInt(n/b, 10) + sizeUnits[u].name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(strings.ToUpper(strings.TrimSpace(text)), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > 1<<50/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return errors.New("give a size such as 64MB")
}

// Type implements pflag.Value.
func (*Size) Type() string { return SizeType }
