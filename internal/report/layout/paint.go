package layout

// Paint is an ANSI colour (SGR parameters, ECMA-48 8.3.117), none where it is empty.
type Paint string

// Paints by what they say.
const (
	None   Paint = ""
	Bold   Paint = "1"
	Dim    Paint = "2"
	Alarm  Paint = "1;31" // bold red
	Doubt  Paint = "1;33" // bold yellow
	Calm   Paint = "1;32" // bold green
	Red    Paint = "31"
	Yellow Paint = "33"
	Blue   Paint = "34"
	Purple Paint = "35"
	Copied Paint = "36" // cyan: commands to copy
)

// In colours a text that has been fitted already.
func (p *Page) In(c Paint, s string) string {
	if !p.Style.Color || c == None || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}
