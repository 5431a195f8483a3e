package facts

import "fmt"

// TimesText is "once" or "3 times".
func TimesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
