package report

// What the pages of the agent have in common with the report.

// PageStyle is the style sheet of the report's page.
func PageStyle() string { return pageStyle }

// ScriptPolicy is the Content-Security-Policy for scripts of the report's page: its own runs, and no other.
func ScriptPolicy() string { return scriptPolicy() }

// PageText is a text of somebody else for a page: on one line, without control characters, bounded, and with numbers
// that are not divided from their units. The template escapes it.
func PageText(s string) string { return plain(s) }
