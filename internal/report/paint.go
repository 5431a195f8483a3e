package report

// paint is an ANSI colour (SGR parameters, ECMA-48 8.3.117), none where empty.
type paint string

const (
	none   paint = ""
	bold   paint = "1"
	dim    paint = "2"
	alarm  paint = "1;31" // bold red
	doubt  paint = "1;33" // bold yellow
	calm   paint = "1;32" // bold green
	red    paint = "31"
	yellow paint = "33"
	blue   paint = "34"
	purple paint = "35"
	copied paint = "36" // cyan: commands to copy
)

// in colours a text that has been fitted already.
func (p *page) in(c paint, s string) string {
	if !p.style.Color || c == none || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// actorPaint tells the actors of a bar apart.
func actorPaint(actor string) paint {
	switch actor {
	case "server":
		return red
	case "network", "proxy":
		return yellow
	case "client":
		return blue
	case "app":
		return purple
	}
	return dim
}
