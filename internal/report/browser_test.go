package report_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// newBrowser starts a headless Chromium. Where there is none the test is skipped: `make test` installs it as root on
// Debian, and says so to others.
func newBrowser(t *testing.T) context.Context {
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

// browserPage is a page in a tab of its own.
type browserPage struct {
	*testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	requests []string // without that for the page itself
	said     []string // on the console, and exceptions
	dialogs  int
}

func openPage(t *testing.T, parent context.Context, address string) *browserPage {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	p := &browserPage{T: t, ctx: ctx, url: address}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		t.Fatal(err)
	}
	command(p, network.Enable, network.EnableParams{})
	command(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.do(chromedp.Navigate(address))
	return p
}

func (p *browserPage) event(event any) {
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
		go chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // else the page hangs
	}
}

func (p *browserPage) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.Fatal(err)
	}
}

// command calls a command of the browser's protocol.
func command[P, R any](p *browserPage, c cdp.Command[P, R], params P) (result R) {
	p.Helper()
	result, err := chromedp.Call(p.ctx, c, params)
	if err != nil {
		p.Fatalf("%s: %v", c.Method, err)
	}
	return result
}

// eval is the value of an expression in the page.
func eval[T any](p *browserPage, expression string) T {
	p.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%v: %s", err, expression)
	}
	return value
}

// await waits until an expression in the page is true.
func (p *browserPage) await(expression string) {
	p.Helper()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(20*time.Second))
	if _, err := chromedp.Run(p.ctx, poll); err != nil {
		p.Fatalf("%v: %s", err, expression)
	}
}

// show sets what the window is: its width in CSS pixels, its medium (screen, print), and the theme (light, dark).
func (p *browserPage) show(width int64, medium, theme string) {
	p.Helper()
	command(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: screenHeight, DeviceScaleFactor: 1,
	})
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
}

// check reports what is wrong with the page as it is shown.
func (p *browserPage) check(what string) {
	p.Helper()
	found := eval[struct {
		Problems []string
		Lowest   float64
	}](p, pageChecks)
	for _, problem := range found.Problems {
		p.Errorf("%s: %s", what, problem)
	}
}

func (p *browserPage) picture(name string) {
	if *screenshots == "" {
		return
	}
	picture := chromedp.FullScreenshot(100)
	if name == "hostile" || strings.HasPrefix(name, "hostile-") { // too long for one picture
		picture = chromedp.CaptureScreenshot()
	}
	png, err := chromedp.Run(p.ctx, picture)
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		p.Error(err)
	}
}

// quiet reports what the page asked of others, and what its scripts said.
func (p *browserPage) quiet() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) > 0 || len(p.said) > 0 || p.dialogs > 0 {
		p.Errorf("requests %q, console %q, %d dialogs", p.requests, p.said, p.dialogs)
	}
}
