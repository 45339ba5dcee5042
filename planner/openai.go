package planner

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"superstep.dev/job"
)

// OpenAI is a planner that asks a model through the chat completions API of OpenAI, or of one of the many servers that
// speak it. It asks for an answer that follows a JSON schema, and does without where that is not served. Its methods may be
// called from several goroutines.
type OpenAI struct {
	client openai.Client
	config Config
	host   string
	// plain and unmetered are what the endpoint was found not to take: a response format, and the wish for a stream's usage.
	plain, unmetered atomic.Bool
}

var _ job.Planner = (*OpenAI)(nil)

// Plan asks the model for a plan. The error is a *job.BadPlanError when an answer came that is no plan, and an [*Error] when
// none came; the draft has the usage of the first as well. What an exchange has cost that broke off is not known here.
func (p *OpenAI) Plan(ctx context.Context, req job.PlanRequest) (job.Draft, error) {
	if len(req.Experts) == 0 {
		return job.Draft{}, p.named(&Error{Problem: "there is no expert to plan for", Do: "add one", Final: true}, req)
	}
	a, err := p.ask(ctx, req)
	if err != nil {
		return job.Draft{}, p.named(p.explain(ctx, err), req)
	}
	a.text, a.refusal = []byte(p.keyless(string(a.text))), []byte(p.keyless(string(a.refusal)))
	draft, err := a.draft(req)
	draft.Usage = p.config.cost(a.usage)
	return draft, err
}

func (p *OpenAI) named(e *Error, req job.PlanRequest) *Error {
	e.Job, e.Planner = req.Job.ID, fmt.Sprintf("the model %s at %s", p.config.Model, p.host)
	if req.SubJob != nil {
		e.SubJob = req.SubJob.ID
	}
	return e
}

// ask sends the request, and sends it again without what the endpoint says that it does not take.
func (p *OpenAI) ask(ctx context.Context, req job.PlanRequest) (answer, error) {
	plain, unmetered := p.plain.Load(), p.unmetered.Load()
	for {
		a, err := p.send(ctx, p.params(req, plain, unmetered))
		switch refused := refusedField(err); {
		case refused == fieldFormat && !plain:
			plain = true
		case refused == fieldUsage && !unmetered:
			unmetered = true
		default:
			if err == nil { // it was that, so the next request need not find out
				p.plain.Store(plain)
				p.unmetered.Store(unmetered)
			}
			return a, err
		}
	}
}

func (p *OpenAI) params(req job.PlanRequest, plain, unmetered bool) openai.ChatCompletionNewParams {
	out := openai.ChatCompletionNewParams{
		Model:    p.config.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions), openai.UserMessage(task(req))},
	}
	if !plain {
		out.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: "plan", Strict: openai.Bool(true), Schema: schema(req.Experts),
			},
		}
	}
	if !unmetered {
		out.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if t := p.config.Temperature; t != nil {
		out.Temperature = openai.Float(*t)
	}
	if n := p.config.MaxTokens; n > 0 {
		out.MaxCompletionTokens = openai.Int(n)
	}
	return out
}

// send makes one exchange, bounded in time, in silence and in size.
func (p *OpenAI) send(ctx context.Context, params openai.ChatCompletionNewParams) (answer, error) {
	exchange, stop := context.WithTimeoutCause(ctx, p.config.Timeout, errTimeout)
	defer stop()
	w := watch(exchange, p.config.Quiet, func() {
		if p.config.Progress != nil {
			p.config.Progress(ctx)
		}
	})
	defer w.stop()
	var response *http.Response
	err := p.client.Post(w.ctx, "chat/completions", params, &response,
		option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithMiddleware(w.guard))
	if err != nil {
		return answer{}, w.why(asReply(err))
	}
	defer response.Body.Close()
	a, err := read(response)
	return a, w.why(err)
}
