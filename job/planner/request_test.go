package planner

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

func TestRequest(t *testing.T) {
	s := newStub(t, answers(goodPlan))
	progress := 0
	p := s.planner(t, func(c *Config) {
		c.Temperature, c.MaxTokens = new(0.2), 5000
		c.InputPrice, c.OutputPrice = 2_500_000, 10_000_001
		c.Progress = func(ctx context.Context) { progress++ }
	})
	draft, err := p.Plan(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, goodDraft, draft.SubJobs)
	// 100 x 2.5 + 20 x 10.000001 millionths, rounded up
	require.Equal(t, job.Usage{Tokens: 120, MicroUSD: 451}, draft.Usage)
	require.Positive(t, progress)

	require.Equal(t, "Bearer "+testKey, s.seen().headers[0].Get("Authorization"))
	require.Equal(t, "application/json", s.seen().headers[0].Get("Content-Type"))
	asked := s.seen().asked[0]
	require.Equal(t, "test-model", asked["model"])
	require.Equal(t, true, asked["stream"])
	require.Equal(t, map[string]any{"include_usage": true}, asked["stream_options"])
	require.Equal(t, 0.2, asked["temperature"])
	require.Equal(t, 5000.0, asked["max_completion_tokens"])
	messages := asked["messages"].([]any)
	require.Len(t, messages, 2)
	require.Equal(t, map[string]any{"role": "system", "content": instructions}, messages[0])
	require.Equal(t, map[string]any{"role": "user", "content": task(request())}, messages[1])
}

// TestRequestLeavesOutWhatIsNotSet because endpoints refuse what they do not know.
func TestRequestLeavesOutWhatIsNotSet(t *testing.T) {
	s := newStub(t, answers(goodPlan))
	_, err := s.planner(t).Plan(t.Context(), request())
	require.NoError(t, err)
	var names []string
	for name := range s.seen().asked[0] {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"model", "messages", "response_format", "stream", "stream_options"}, names)
}

// TestSchemaIsStrict holds the schema to what the API demands of strict ones: every object closed, every property required,
// no keyword outside the subset; names of formats have their own alphabet.
func TestSchemaIsStrict(t *testing.T) {
	s := newStub(t, answers(goodPlan))
	_, err := s.planner(t).Plan(t.Context(), request())
	require.NoError(t, err)
	format := s.seen().asked[0]["response_format"].(map[string]any)
	require.Equal(t, "json_schema", format["type"])
	described := format["json_schema"].(map[string]any)
	require.Equal(t, true, described["strict"])
	require.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), described["name"])
	root := described["schema"].(map[string]any)
	require.Equal(t, "object", root["type"])
	require.Equal(t, 8, strict(t, root), "texts in it")

	subjob := root["properties"].(map[string]any)["subjobs"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
	require.Equal(t, []any{"loader", "writer"}, subjob["assigned_expert"].(map[string]any)["enum"])
	// A model writes in the order of the schema: it is to think first.
	raw := s.seen().raw[0]
	require.Less(t, strings.Index(raw, `"thinking":{"type"`), strings.Index(raw, `"goal":{"type"`))
	require.Less(t, strings.Index(raw, `"dependencies":{"type"`), strings.Index(raw, `"assigned_expert":{"type"`))

	// The template in the instructions is the same plan.
	template := instructions[strings.LastIndex(instructions, "\n")+1:]
	var plan struct {
		SubJobs []map[string]any `json:"subjobs"`
	}
	require.NoError(t, json.Unmarshal([]byte(template), &plan))
	require.Len(t, plan.SubJobs[0], len(subjob))
	for name := range subjob {
		require.Contains(t, plan.SubJobs[0], name)
	}
}

// strict checks a schema and returns how many strings are in it.
func strict(t *testing.T, schema map[string]any) int {
	for keyword := range schema {
		require.Contains(t, []string{"type", "properties", "required", "additionalProperties", "items", "enum", "description"}, keyword)
	}
	strings := 0
	switch schema["type"] {
	case "object":
		require.Equal(t, false, schema["additionalProperties"])
		var names []any
		for name, p := range schema["properties"].(map[string]any) {
			names = append(names, name)
			strings += strict(t, p.(map[string]any))
		}
		require.ElementsMatch(t, names, schema["required"])
	case "array":
		strings += strict(t, schema["items"].(map[string]any))
	case "string":
		strings++
	default:
		t.Errorf("type %v", schema["type"])
	}
	return strings
}

// TestManyExperts: an enum has bounds, and is left out above them.
func TestManyExperts(t *testing.T) {
	experts := func(n, length int) []job.Profile {
		return slices.Repeat([]job.Profile{{Name: strings.Repeat("x", length)}}, n)
	}
	require.Len(t, names(experts(250, 64)), 250)
	require.Len(t, names(experts(500, 30)), 500)
	require.Empty(t, names(experts(500, 31)))
	require.Empty(t, names(experts(501, 1)))
	plain, err := json.Marshal(schema(experts(501, 1)))
	require.NoError(t, err)
	require.NotContains(t, string(plain), "enum")
}

func TestEndpointWithoutStructuredOutput(t *testing.T) {
	s := newStub(t,
		fails(400, "", "Unknown field: stream_options"),
		fails(422, "unsupported", "This response_format type is unavailable now"),
		answers("Sure!\n```json\n"+goodPlan+"\n```"),
	)
	p := s.planner(t)
	for range 2 {
		draft, err := p.Plan(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, goodDraft, draft.SubJobs)
	}
	require.Len(t, s.seen().asked, 4, "the second plan takes one request")
	require.Contains(t, s.seen().asked[1], "response_format")
	require.NotContains(t, s.seen().asked[1], "stream_options")
	for _, asked := range s.seen().asked[2:] {
		require.NotContains(t, asked, "response_format")
		require.NotContains(t, asked, "stream_options")
	}
}

// TestRefusedEitherWay: what is refused without the format as well is not the format's fault, and nothing is concluded.
func TestRefusedEitherWay(t *testing.T) {
	s := newStub(t, fails(400, "", "response_format is not served"), fails(400, "", "response_format is still not served"), answers(goodPlan))
	p := s.planner(t)
	_, err := p.Plan(t.Context(), request())
	require.ErrorContains(t, err, "still not served")
	_, err = p.Plan(t.Context(), request())
	require.NoError(t, err)
	require.Contains(t, s.seen().asked[2], "response_format")
}

func TestNewOpenAI(t *testing.T) {
	for name, c := range map[string]struct {
		config  Config
		problem string
	}{
		"no model":        {Config{APIKey: "k"}, "set Config.Model"},
		"no key":          {Config{Model: "m"}, "set OPENAI_API_KEY"},
		"no address":      {Config{Model: "m", BaseURL: "localhost:11434/v1"}, "set Config.BaseURL or OPENAI_BASE_URL"},
		"a broken one":    {Config{Model: "m", BaseURL: "http://u:" + testKey + "@[::1/v1"}, "set Config.BaseURL or OPENAI_BASE_URL"},
		"hot":             {Config{Model: "m", APIKey: "k", Temperature: new(2.1)}, "Temperature"},
		"negative tokens": {Config{Model: "m", APIKey: "k", MaxTokens: -1}, "MaxTokens"},
		"negative price":  {Config{Model: "m", APIKey: "k", InputPrice: -1}, "InputPrice"},
		"dear":            {Config{Model: "m", APIKey: "k", OutputPrice: maxPrice + 1}, "OutputPrice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "")
			t.Setenv("OPENAI_BASE_URL", "")
			_, err := NewOpenAI(c.config)
			require.ErrorContains(t, err, c.problem)
			require.NotContains(t, err.Error(), testKey)
		})
	}
}

func TestEnvironment(t *testing.T) {
	s := newStub(t, answers(goodPlan))
	t.Setenv("OPENAI_API_KEY", " "+testKey+"\n")
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1/")
	p, err := NewOpenAI(Config{Model: "m"})
	require.NoError(t, err)
	_, err = p.Plan(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, "Bearer "+testKey, s.seen().headers[0].Get("Authorization"))

	t.Setenv("OPENAI_API_KEY", "") // endpoints of one's own often want none
	p, err = NewOpenAI(Config{Model: "m"})
	require.NoError(t, err)
	_, err = p.Plan(t.Context(), request())
	require.NoError(t, err)
	require.Empty(t, s.seen().headers[1].Get("Authorization"))
}

func TestWithoutExperts(t *testing.T) {
	s := newStub(t, answers(goodPlan))
	req := request()
	req.Experts = nil
	_, err := s.planner(t).Plan(t.Context(), req)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Permanent())
	require.Empty(t, s.seen().asked)
}
