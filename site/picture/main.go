// Command picture writes pictures of pages of a real agent for the documentation site, taken in a headless Chromium.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// picture is what is taken.
type picture struct {
	address, file, theme, when string
	width, height              int64 // CSS pixels
}

func main() {
	var p picture
	browser := flag.String("browser", "chromium", "`program`")
	flag.StringVar(&p.file, "out", "", "`file` that is written, a PNG")
	flag.StringVar(&p.theme, "theme", "light", "`theme` that the browser prefers: light or dark")
	flag.Int64Var(&p.width, "width", 1280, "of the window, in CSS `pixels`")
	flag.Int64Var(&p.height, "height", 800, "of the window, in CSS `pixels`")
	flag.StringVar(&p.when, "when", "document.readyState == 'complete'", "`expression` to wait for")
	flag.Parse()
	p.address = flag.Arg(0)
	if p.address == "" || p.file == "" {
		fmt.Fprintln(os.Stderr, "picture: give --out FILE and an address")
		os.Exit(2)
	}
	if err := p.take(*browser); err != nil {
		fmt.Fprintf(os.Stderr, "picture: %s: %v\n", p.address, err)
		os.Exit(1)
	}
}

func (p picture) take(browser string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx,
		append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: p.width, Height: p.height, DeviceScaleFactor: 1,
	}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.theme}},
	}); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(p.address)); err != nil {
		return err
	}
	for {
		ready, err := chromedp.Run(ctx, chromedp.Evaluate[bool](p.when, chromedp.EvalAwaitPromise))
		if ready {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not true in time: %s (last error: %v)", p.when, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(p.file, png, 0o644)
}
