package workflows

import (
	"fmt"
	"strings"

	"superstep.dev/internal/clip"
	"superstep.dev/internal/draw"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// maxDrawn bounds the nodes of a graph whose picture is among the details: a larger one nobody reads in lines of text.
const maxDrawn = 100

// details are what Temporal's UI and CLI show of the run beside its events, as Markdown: where the run stands, what the
// run asks, and the picture of its graph. The texts are the same as in lists: one line each, and no parameters of an
// approval, which may be secret.
func (l *listed) details() string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("**%s** · graph %s", l.status, literal(l.in.Graph)))
	if l.loop != nil {
		b.WriteString(fmt.Sprintf(" · superstep %d", max(0, l.loop.Step())))
	}
	b.WriteByte('\n')
	switch {
	case l.life.State.Paused != nil && l.life.State.Paused.Reason != "":
		b.WriteString(fmt.Sprintf("\npaused: %s\n", literal(clip.Line(l.life.State.Paused.Reason))))
	case l.drained != "":
		b.WriteString(fmt.Sprintf("\ndrained: %s\n", literal(clip.Line(l.drained))))
	case l.failure != nil:
		b.WriteString(fmt.Sprintf("\n%s\n", literal(clip.Line(l.failure.Error()))))
	}
	if l.thread != nil {
		l.detailOpen(&b)
	}
	if l.status != protocol.StatusRunning && l.program != nil && len(l.program.Spec.Nodes) <= maxDrawn {
		b.WriteString(fmt.Sprintf("\n~~~text\n%s~~~\n", draw.Text(l.program.Spec)))
	}
	return b.String()
}

// detailOpen writes what the run waits for.
func (l *listed) detailOpen(b *strings.Builder) {
	asked := l.noteOf(l.life.Questions())
	for _, q := range asked.Questions {
		b.WriteString(fmt.Sprintf("\n- question %s of %s: %s", literal(q.ID), literal(q.Node), literal(q.Asks)))
	}
	if asked.More > 0 {
		b.WriteString(fmt.Sprintf("\n- and %d more questions", asked.More))
	}
	waits := l.life.Waits()
	for _, w := range waits[:min(len(waits), listing.MaxQuestions)] {
		b.WriteString(fmt.Sprintf("\n- %s waits for the event %s", literal(w.Node), literal(clip.Line(w.Event))))
	}
	if len(asked.Questions)+len(waits) > 0 {
		b.WriteByte('\n')
	}
}

// literal is text that Markdown shows as it stands.
func literal(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " " + text + " " + fence
}
