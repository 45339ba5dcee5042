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
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
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
