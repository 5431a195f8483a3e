package profile

import (
	"testing"

	"slowpath/internal/source/profile/interpreter"
)

// TestFrameText: functions of applications and of libraries, without directories of the former.
func TestFrameText(t *testing.T) {
	python, ruby := &languages[0], &languages[1]
	for _, c := range []struct {
		in             *language
		function, file string
		want           string
	}{
		{python, "Shop.price", "/srv/shop/app.py", "Shop.price (app.py:7)"},
		{python, "<module>", "app.py", "module (app.py:7)"},
		{python, "run.<locals>.<lambda>", "app.py", "run.lambda (app.py:7)"},
		{python, "get", "/usr/lib/python3/dist-packages/redis/client.py", "get [redis/client.py:7]"},
		{python, "urlopen", "/usr/lib/python3.11/urllib/request.py", "urlopen [urllib/request.py:7]"},
		{python, "_find", "<frozen importlib._bootstrap>", "_find [importlib._bootstrap:7]"},
		{ruby, "price", "/srv/shop/app.rb", "price (app.rb:7)"},
		{ruby, "block (2 levels) in <main>", "app.rb", "block (2 levels) in main (app.rb:7)"},
		{ruby, "<class:Shop>", "/srv/lib/shop.rb", "class:Shop (shop.rb:7)"},
		{ruby, "loop", "<internal:kernel>", "loop [kernel:7]"},
		{ruby, "generate", "/usr/lib/ruby/3.1.0/json/common.rb", "generate [json/common.rb:7]"},
		{ruby, "call", "/usr/lib/ruby/vendor_ruby/redis/client.rb", "call [redis/client.rb:7]"},
		{
			ruby, "run", "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/server.rb",
			"run [puma-6.4.0/lib/puma/server.rb:7]",
		},
		{
			ruby, "run", "/app/vendor/bundle/ruby/3.3.0/gems/a-1.0/gems/b-2.0/b.rb", "run [b-2.0/b.rb:7]",
		},
		{ruby, "price", "/srv/gems/shop/app.rb", "price (app.rb:7)"},
	} {
		f := interpreter.Frame{Function: c.function, File: c.file, Line: 7}
		if got := c.in.frameText(f); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
