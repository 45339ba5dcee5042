package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"superstep.dev/job"
)

const (
	// officialURL is the API's own address; others serve models that need no key.
	officialURL = "https://api.openai.com/v1/"
	// maxAnswer bounds the text of a model's answer, in bytes: more than a plan may have (job.MaxPlanText), thoughts included.
	maxAnswer = 2 << 20
	// maxPrice is a thousand dollars per million tokens. With it, and the bound on reported tokens, costs stay in an int64.
	maxPrice = 1_000_000_000
)

// Config says which model an [OpenAI] asks, and how.
type Config struct {
	// Model is required: the name that the endpoint knows it by.
	Model string
	// BaseURL is what comes before "/chat/completions", such as "http://localhost:11434/v1"; "" is OPENAI_BASE_URL, or else
	// OpenAI's own.
	BaseURL string
	// APIKey is "" for OPENAI_API_KEY. Endpoints other than OpenAI's own may need none.
	APIKey string
	// Temperature is sent when it is not nil, from 0 to 2. Reasoning models refuse it.
	Temperature *float64
	// MaxTokens bounds what the model may write, its reasoning included; 0 is the model's own bound.
	MaxTokens int64
	// Timeout bounds one request with its answer: 5 minutes. Quiet bounds how long nothing at all may come meanwhile: 2
	// minutes. Both are errors that are retried.
	Timeout time.Duration
	Quiet   time.Duration
	// InputPrice and OutputPrice are millionths of a dollar per million tokens: 2,500,000 for $2.50. Plans cost no money
	// when both are 0.
	InputPrice  int64
	OutputPrice int64
	// Progress, when set, is called whenever something of an answer has come, with the context of the call: a place for an
	// activity's heartbeat.
	Progress func(context.Context)
	// HTTP is what requests are sent with: http.DefaultClient.
	HTTP *http.Client
}

// NewOpenAI returns the planner that c describes. Its error says which field, or which environment variable, to change.
// The endpoint is not asked.
func NewOpenAI(c Config) (*OpenAI, error) {
	c.BaseURL = cmp.Or(strings.TrimSpace(c.BaseURL), strings.TrimSpace(os.Getenv("OPENAI_BASE_URL")), officialURL)
	c.APIKey = cmp.Or(strings.TrimSpace(c.APIKey), strings.TrimSpace(os.Getenv("OPENAI_API_KEY")))
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.Quiet = cmp.Or(c.Quiet, 2*time.Minute)
	c.HTTP = cmp.Or(c.HTTP, http.DefaultClient)
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		// Not quoted: a key may be part of it.
		return nil, errors.New("planner: the base URL is none: set Config.BaseURL or OPENAI_BASE_URL to one such as https://api.openai.com/v1")
	}
	if err := c.check(base.Host); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	p := &OpenAI{config: c, host: base.Host}
	p.client = openai.NewClient(
		option.WithBaseURL(c.BaseURL), option.WithAPIKey(c.APIKey), option.WithHTTPClient(c.HTTP),
		option.WithMaxRetries(0), // Temporal retries, and shows that it does
	)
	return p, nil
}

func (c Config) check(host string) error {
	switch {
	case c.Model == "":
		return errors.New("no model: set Config.Model to one that the endpoint serves")
	case c.APIKey == "" && host == "api.openai.com":
		return errors.New("no key: set OPENAI_API_KEY, or OPENAI_BASE_URL to an endpoint that needs none")
	case c.Temperature != nil && !(*c.Temperature >= 0 && *c.Temperature <= 2):
		return errors.New("Config.Temperature is not from 0 to 2")
	case c.MaxTokens < 0 || c.Timeout < 0 || c.Quiet < 0:
		return errors.New("Config.MaxTokens, Timeout and Quiet are not negative")
	case min(c.InputPrice, c.OutputPrice) < 0 || max(c.InputPrice, c.OutputPrice) > maxPrice:
		return fmt.Errorf("Config.InputPrice and OutputPrice are from 0 to %d", maxPrice)
	}
	return nil
}

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
