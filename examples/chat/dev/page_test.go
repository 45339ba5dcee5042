package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/chat"
	"superstep.dev/test/processes/stack"
)

// browser is a Chromium with the page, in a process of its own: examples/chat/browser is another module, so that nothing here needs what
// that needs.
type browser struct {
	*testing.T
	in    io.Writer
	out   *bufio.Scanner
	shots string // where pictures go, "" for nowhere
}

// newBrowser skips the test where there is no Chromium, or where its driver cannot be built for want of a module.
func newBrowser(t *testing.T) *browser {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	found := false
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		_, err := exec.LookPath(name)
		found = found || err == nil
	}
	if !found {
		t.Skip("there is no Chromium on this machine: with one (apt-get install chromium) this test drives the page in it")
	}
	root, err := stack.Root(t.Context())
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "browser")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = filepath.Join(root, "examples", "chat", "browser"), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	download := exec.CommandContext(t.Context(), "go", "mod", "download")
	download.Dir, download.Env = build.Dir, build.Env
	if said, err := download.CombinedOutput(); err != nil {
		t.Skipf("the modules of the browser's driver cannot be had: %v: %s", err, said)
	}
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	cmd := exec.CommandContext(t.Context(), program)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() }) // it ends with its input
	return &browser{T: t, in: in, out: bufio.NewScanner(out), shots: os.Getenv("CHAT_SHOTS")}
}

// do has the browser do something, and returns what it answers. The page must have thrown nothing, and loaded all that it wanted.
func (b *browser) do(do, on, text string) any {
	b.Helper()
	line, err := json.Marshal(map[string]string{"do": do, "on": on, "text": text})
	require.NoError(b, err)
	_, err = b.in.Write(append(line, '\n'))
	require.NoError(b, err)
	require.True(b, b.out.Scan(), "the browser has ended")
	var done struct {
		Value any
		Error string
		Said  []string
	}
	require.NoError(b, json.Unmarshal(b.out.Bytes(), &done))
	require.Empty(b, done.Error, "%s %s %s", do, on, text)
	for _, said := range done.Said {
		expected := strings.Contains(said, "Failed to load resource") || strings.Contains(said, "net::ERR") // the service is killed
		require.True(b, expected, "the page complains: %s", said)
	}
	return done.Value
}

// until waits until an expression holds.
func (b *browser) until(expression string) {
	b.Helper()
	for late := time.Now().Add(3 * time.Minute); b.do("eval", "", "!!("+expression+")") != true; time.Sleep(30 * time.Millisecond) {
		if time.Now().After(late) {
			b.shot("late")
			require.FailNow(b, "the page does not come so far", "%s\n%v", expression, b.do("eval", "", "document.body.innerText"))
		}
	}
}

// reload loads the page again, and returns when the new document is there: until then conditions would look at the old one.
func (b *browser) reload() {
	b.Helper()
	b.do("eval", "", `void (window.old = true)`)
	b.do("reload", "", "")
	b.until(`!window.old && document.readyState === "complete"`)
}

// shot takes a picture where the environment variable CHAT_SHOTS names a directory.
func (b *browser) shot(name string) {
	if b.shots != "" {
		b.do("shot", "", filepath.Join(b.shots, name+".png"))
	}
}

// spoken are the messages that the page shows.
func (b *browser) spoken() (out []string) {
	b.Helper()
	words, ok := b.do("eval", "", `[...document.querySelectorAll(".words")].map((w) => w.textContent)`).([]any)
	require.True(b, ok)
	for _, w := range words {
		out = append(out, w.(string))
	}
	return out
}

const (
	// atRest holds once the page has loaded the conversation and shows it whole, and nothing is under way there.
	atRest = `document.querySelector("#log")?.ariaBusy === "false" && document.querySelector("#stop").hidden &&
		document.querySelector("#status").textContent === ""`
	says    = `document.querySelector("#log").innerText.includes(%q)`
	writing = `(document.querySelector(".writing .words")?.textContent.length ?? 0)`
)

func saysText(text string) string { return strings.Replace(says, "%q", quoted(text), 1) }

func quoted(text string) string { raw, _ := json.Marshal(text); return string(raw) }

// The page in a browser: words as they come, while the worker and the service are killed and the page is loaded again; stop; a message that
// is changed; what is hostile.
func TestPageStreams(t *testing.T) {
	b, r := newBrowser(t), newRoom(t, slow)
	b.do("open", "", r.page)
	b.until(`document.querySelector(".empty button")`)
	b.shot("1-empty")
	b.do("type", "#words", "What can you do?\n")
	b.until(writing + ` > 20`)
	b.shot("2-streaming")
	r.killWorker(slow)
	b.until(writing + ` > 50`)
	require.NoError(t, r.service.Kill())
	b.until(`document.querySelector("#status").textContent.includes("lost")`)
	b.shot("3-lost")
	r.startService()
	b.until(writing + ` > 80`)
	b.reload()
	b.until(writing + ` > 100`)
	r.killWorker(quick)
	b.until(atRest)
	require.Equal(t, []string{"What can you do?", chat.Help}, b.spoken())
	require.Equal(t, "What can you do?", b.do("eval", "", `document.querySelector("#threads a[aria-current] span").textContent`))

	r.killWorker(slow)
	b.do("type", "#words", "<img src=x onerror=alert(1)> again\n")
	b.until(writing + ` > 20`)
	b.do("click", "#stop", "")
	b.until(atRest)
	require.Equal(t, []string{"What can you do?", chat.Help, "<img src=x onerror=alert(1)> again"}, b.spoken())
	require.Equal(t, 0.0, b.do("eval", "", `document.querySelectorAll("main img").length`))

	r.killWorker(quick)
	b.do("click", ".person button", "") // the first message
	b.shot("4-edit")
	b.do("eval", "", `document.querySelector(".person textarea").value = "Where is order o-11?"`)
	b.do("click", ".person .main", "")
	b.until(saysText("Is there anything that you want me to do with it?"))
	b.until(atRest)
	require.Equal(t, "Where is order o-11?", b.spoken()[0])
	require.Len(t, b.spoken(), 3, "the message, a word about looking, and the answer: a branch from before it")
}

// A question and an approval with the buttons of their schemas; what was approved is done once; a narrow screen.
func TestPageAsks(t *testing.T) {
	b, r := newBrowser(t), newRoom(t, quick)
	b.do("open", "", r.page)
	b.do("type", "#words", "Refund order o-1042, please.\n")
	b.until(`document.querySelector(".ask .row button")`)
	b.shot("5-question")
	require.Equal(t, "Damaged Late Not wanted", b.do("eval", "", `[...document.querySelectorAll(".ask .row button")].map((b) => b.textContent).join(" ")`))
	b.until(`document.querySelector("#words").disabled`)
	b.do("type", ".ask input", "The box was open.")
	b.do("click", ".ask .row button:nth-child(1)", "")
	b.until(`document.querySelector(".ask[aria-label=Approval]")`)
	b.until(`document.querySelector("#stop").hidden`)
	b.shot("6-approval")
	require.Equal(t, "Approve Reject Edit", b.do("eval", "", `[...document.querySelectorAll(".ask .row button")].map((b) => b.textContent).join(" ")`))
	b.reload()
	b.until(`document.querySelector(".ask[aria-label=Approval] .row .main")`)
	require.Equal(t, "false", b.do("eval", "", `document.querySelector("#log").ariaBusy`), "a card comes with all else, or its buttons move")
	b.do("click", ".ask[aria-label=Approval] .row .main", "")
	b.until(saysText("The money is on its way, once."))
	b.until(atRest)
	b.shot("7-done")
	receipts, err := r.pay.Refunds(t.Context(), "o-1042")
	require.NoError(t, err)
	require.Len(t, receipts, 1)

	// A conversation that is being loaded is shown as that, not as a new one.
	opened := b.do("eval", "", `location.hash`).(string)
	b.do("click", "#new", "")
	b.until(`document.querySelector(".empty button")`)
	b.until(atRest)
	require.NoError(t, syscall.Kill(r.service.PID(), syscall.SIGSTOP))
	b.do("eval", "", `void (location.hash = `+quoted(opened)+`)`)
	b.until(`document.querySelector("#status").textContent.includes("being loaded") && document.querySelector("#send").disabled`)
	require.Equal(t, true, b.do("eval", "", `document.querySelector("#log").ariaBusy === "true" && !document.querySelector(".empty")`))
	require.NoError(t, syscall.Kill(r.service.PID(), syscall.SIGCONT))
	b.until(atRest)
	require.Contains(t, b.spoken()[len(b.spoken())-1], "The money is on its way, once.")

	b.do("size", "", "400x800")
	b.shot("8-narrow")
	require.Equal(t, true, b.do("eval", "", `document.documentElement.scrollWidth <= innerWidth`))

	b.do("eval", "", `location.hash = "01980000-0000-7000-8000-000000000000"`)
	b.until(`!document.querySelector("#problem").hidden`)
	b.shot("9-problem")
	require.Contains(t, b.do("eval", "", `document.querySelector("#problem").innerText`), "01980000-0000-7000-8000-000000000000")
}
