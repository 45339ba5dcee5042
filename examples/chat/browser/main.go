// Command browser drives a headless Chromium for the chat example's tests. It is a module of its own, so that no other program of this
// repository needs what it needs. It reads one JSON object for each line, does it, and answers with one:
//
//	{"do": "open", "text": "http://127.0.0.1:2024/chat/"}
//	{"do": "reload"}
//	{"do": "click", "on": "#new"}
//	{"do": "type", "on": "#words", "text": "Refund order o-1042, please.\n"}
//	{"do": "eval", "text": "document.title"}
//	{"do": "size", "text": "400x800"}
//	{"do": "shot", "text": "page.png"}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// step is what is to be done.
type step struct{ Do, On, Text string }

// done is what came of it.
type done struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
	// Said is what the page has complained of since the last step: errors of scripts, refused loads.
	Said []string `json:"said,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run() error {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1200, 850))
	if os.Getuid() == 0 { // the sandbox of Chromium does not work for root
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	said := make(chan string, 1000)
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				text += " " + e.ExceptionDetails.Exception.Description
			}
			said <- text
		case *log.EventEntryAdded:
			said <- e.Entry.Text
		}
	})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var s step
		var d done
		err := json.Unmarshal(lines.Bytes(), &s)
		if err == nil {
			d.Value, err = s.take(ctx)
		}
		if err != nil {
			d.Error = err.Error()
		}
		for len(said) > 0 {
			d.Said = append(d.Said, <-said)
		}
		if err := out.Encode(d); err != nil {
			return err
		}
	}
	return lines.Err()
}

// painted waits for a whole frame. A person clicks what is to be seen; before the first frame of a page Chromium drops what is clicked, and
// what a script has just put there moves until it is drawn.
const painted = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn())))`

func (s step) take(ctx context.Context) (value any, err error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	switch s.Do {
	case "open":
		return nil, chromedp.Do(ctx, chromedp.Navigate(s.Text))
	case "reload": // until the new document is there
		return nil, chromedp.Do(ctx, chromedp.Reload())
	case "click":
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](painted, chromedp.EvalAwaitPromise)); err != nil {
			return nil, err
		}
		return nil, chromedp.Do(ctx, chromedp.Click(s.On, chromedp.NodeVisible, chromedp.NodeEnabled))
	case "type":
		return nil, chromedp.Do(ctx, chromedp.SendKeys(s.On, s.Text, chromedp.NodeVisible, chromedp.NodeEnabled))
	case "eval":
		return chromedp.Run(ctx, chromedp.Evaluate[any](s.Text))
	case "size":
		var width, height int64
		if _, err := fmt.Sscanf(s.Text, "%dx%d", &width, &height); err != nil {
			return nil, err
		}
		return nil, chromedp.Do(ctx, chromedp.EmulateViewport(width, height))
	case "shot":
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return nil, err
		}
		return nil, os.WriteFile(s.Text, png, 0o644)
	}
	return nil, errors.New("do is open, reload, click, type, eval, size or shot")
}
