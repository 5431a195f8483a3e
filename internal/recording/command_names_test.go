package recording

import "testing"

func TestCommandName(t *testing.T) {
	for name, want := range map[string]string{
		"get": "GET", "GEORADIUSBYMEMBER_RO": "GEORADIUSBYMEMBER_RO", "ft.search": "FT.SEARCH",
		"RESTORE-ASKING": "RESTORE-ASKING",
		"b840fc02d524045429941cc15f59e41cb7be6c52": UnknownCommand, "HIDDENCONFIG5": UnknownCommand, "": UnknownCommand,
		"a.b.c": UnknownCommand, "x1.y2": UnknownCommand, "GET key": UnknownCommand,
	} {
		if got := CommandName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"ZREVRANGEBYSCORE": "ZREVRANGEBYSCORE", "ZREMRANGEBYSCORE": "ZREMRANGEBYSCORE",
		"GEORADIUSBYMEMBE": "GEORADIUSBYMEMBE",
		"ZREVRANGEBYSCOR":  UnknownCommand, "HIDDEN-COMMAND-B": UnknownCommand, "PING": "PING",
	} {
		if got := CommandNameCut(name, 16); got != want {
			t.Errorf("%q cut: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"get": "GET", "s3cret": "", "a": "", "NO-EVICT": "NO-EVICT", "x y": ""} {
		if got := SubcommandName(name); got != want {
			t.Errorf("subcommand %q: %q, want %q", name, got, want)
		}
	}
}
