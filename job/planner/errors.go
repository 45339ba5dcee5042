package planner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"

	"superstep.dev/job"
)

// Error says that a planner gave no answer, good or bad. Asking again may help unless it is Final.
type Error struct {
	Job    string
	SubJob string // what was to be planned, "" for the whole job
	// Planner is who was asked: a model and where it is served, or the rules.
	Planner string
	// Status is the HTTP status of the reply, 0 when there was none.
	Status  int
	Problem string
	Do      string // what to do about it, "" when waiting is all
	// Wait is how long the endpoint asks to be left alone: at most 15 minutes, 0 when it says nothing.
	Wait time.Duration
	// Final says that asking again the same way fails again.
	Final bool
	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: ", e.Job)
	if e.SubJob != "" {
		fmt.Fprintf(&b, "subjob %s: ", e.SubJob)
	}
	b.WriteString(e.Planner + ": ")
	if e.Status != 0 {
		fmt.Fprintf(&b, "HTTP %d: ", e.Status)
	}
	b.WriteString(e.Problem)
	if e.Do != "" {
		b.WriteString(": " + e.Do)
	}
	return b.String()
}

// Unwrap returns what broke the exchange: of the network, or of the context. What an endpoint replied is not wrapped,
// because the client's errors hold the request, and with it the key.
func (e *Error) Unwrap() error { return e.cause }

// Permanent reports whether the activity that called the planner is to fail for good.
func (e *Error) Permanent() bool { return e.Final }

// NextRetryDelay is when to ask again; 0 leaves that to the retry policy.
func (e *Error) NextRetryDelay() time.Duration { return e.Wait }

// explain makes an [Error] of what broke an exchange. The key is in none of its texts, whatever the endpoint says.
func (p *OpenAI) explain(ctx context.Context, err error) *Error {
	e := &Error{}
	if reply, is := errors.AsType[*replyError](err); is {
		e.Status, e.Problem, e.Do, e.Wait, e.Final = reply.status, reply.text, reply.advice(), reply.wait, reply.final()
	} else {
		if where, is := errors.AsType[*url.Error](err); is {
			err = where.Err // its text has the whole address
		}
		e.Problem, e.Do = err.Error(), adviceFor(ctx, err)
		if p.keyless(e.Problem) == e.Problem {
			e.cause = err
		}
	}
	e.Problem = clip(p.keyless(e.Problem), 500)
	return e
}

// keyless returns text without the key.
func (p *OpenAI) keyless(text string) string {
	if p.config.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, p.config.APIKey, "[the key]")
}

func adviceFor(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil: // whoever called knows why
		return ""
	case errors.Is(err, errTimeout):
		return "if that is usual for the model, raise Config.Timeout"
	case errors.Is(err, errQuiet):
		return "if that is usual for the model, raise Config.Quiet"
	}
	return ""
}

// maxTokens is more than any exchange has: a report above it is wrong.
const maxTokens = 1_000_000_000

// cost returns what an exchange has cost, unknown when the endpoint does not say, or says nonsense.
func (c Config) cost(u openai.CompletionUsage) job.Usage {
	in, out := u.PromptTokens, u.CompletionTokens
	total := max(u.TotalTokens, in+out)
	if min(in, out) < 0 || max(in, out, total) > maxTokens || total <= 0 {
		return job.Usage{Unknown: true}
	}
	const million = 1_000_000
	return job.Usage{Tokens: total, MicroUSD: (in*c.InputPrice + out*c.OutputPrice + million - 1) / million}
}
