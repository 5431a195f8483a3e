// Package browsertest opens pages in a headless Chromium, for tests: whether they fit the screen, can be read, and are
// quiet.
package browsertest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserTimeout bounds the life of a browser.
const browserTimeout = 10 * time.Minute

// New starts a headless Chromium. Where there is none the test is skipped: `make test` installs it as root on
// Debian, and says so to others.
func New(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium in PATH; as root: apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(context.Background(), browserTimeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return ctx
}

//go:embed page_checks.js
var pageChecks string

// ScreenHeight is the height of the first screen in CSS pixels.
const ScreenHeight = 800

// Page is a page in a tab of its own.
type Page struct {
	testing.TB
	Context context.Context // of chromedp
	Close   func()          // closes the tab; so does the end of the test
	url     string

	mu       sync.Mutex
	requests []string // without that for the page itself
	said     []string // on the console, and exceptions
	dialogs  int
}

// Open opens an address in a browser of New.
func Open(t testing.TB, parent context.Context, address string) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	p := &Page{TB: t, Close: cancel, Context: ctx, url: address}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		t.Fatal(err)
	}
	Command(p, network.Enable, network.EnableParams{})
	Command(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.Do(chromedp.Navigate(address))
	return p
}

func (p *Page) event(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != p.url {
			p.requests = append(p.requests, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		p.said = append(p.said, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		p.said = append(p.said, e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		p.dialogs++
		// else the page hangs
		go chromedp.Call(p.Context, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// Do carries out steps.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.Context, steps...); err != nil {
		p.Fatal(err)
	}
}

// DoUntil carries out steps, again after a few seconds without an effect, until an expression of the page is true:
// under load the browser loses keys that come while it moves the focus.
func (p *Page) DoUntil(expression string, steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	for range 4 {
		p.Do(steps...)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			done, err := chromedp.Run(p.Context, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
			if err == nil && done {
				return
			}
		}
	}
	p.Fatalf("not after 4 times: %s; the page is %s, its focus at %s", expression, Eval[string](p, "location.href"),
		Eval[string](p, "document.activeElement.outerHTML.slice(0, 200)"))
}

// Command calls a command of the browser's protocol.
func Command[P, R any](p *Page, c cdp.Command[P, R], params P) (result R) {
	p.Helper()
	result, err := chromedp.Call(p.Context, c, params)
	if err != nil {
		p.Fatalf("%s: %v", c.Method, err)
	}
	return result
}

// Eval is the value of an expression in the page.
func Eval[T any](p *Page, expression string) T {
	p.Helper()
	value, err := chromedp.Run(p.Context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%v: %s", err, expression)
	}
	return value
}

// Await waits until an expression in the page is true. The page may become another one meanwhile.
func (p *Page) Await(expression string) {
	p.Helper()
	value, err := false, error(nil)
	for deadline := time.Now().Add(20 * time.Second); !value; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("not within 20 s: %s (%v)", expression, err)
		}
		value, err = chromedp.Run(p.Context, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
	}
}

// Show sets what the window is: its width in CSS pixels, its medium (screen, print), and the theme (light, dark).
func (p *Page) Show(width int64, medium, theme string) {
	p.Helper()
	Command(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: ScreenHeight, DeviceScaleFactor: 1,
	})
	Command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
}

// Check reports what is wrong with the page as it is shown.
func (p *Page) Check(what string) {
	p.Helper()
	found := Eval[struct {
		Problems []string
		Lowest   float64
	}](p, pageChecks)
	for _, problem := range found.Problems {
		p.Errorf("%s: %s", what, problem)
	}
}

// Picture leaves a picture of the page in a file NAME.png of a directory: of the whole page, or of the window alone. An
// empty directory: nowhere.
func (p *Page) Picture(dir, name string, whole bool) {
	p.Helper()
	if dir == "" {
		return
	}
	picture := chromedp.CaptureScreenshot()
	if whole {
		picture = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(p.Context, picture)
	if err != nil {
		p.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.Error(err)
	}
}

// Quiet reports what the page asked of others, and what its scripts said.
func (p *Page) Quiet() {
	p.Helper()
	p.QuietBut(func(string) bool { return false })
}

// QuietBut is Quiet, but for requests to addresses that may be asked.
func (p *Page) QuietBut(may func(address string) bool) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := slices.DeleteFunc(slices.Clone(p.requests), may)
	if len(asked) > 0 || len(p.said) > 0 || p.dialogs > 0 {
		p.Errorf("requests %q, console %q, %d dialogs", asked, p.said, p.dialogs)
	}
}
