package superstep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/message"
)

// A conversation that one API began goes on with the other: decode what an API returned into a Message, and convert the
// whole for a request.
func ExampleAnthropicMessages() {
	var asked, answer message.Message
	_ = json.Unmarshal([]byte(`{"role":"user","content":"How warm is it in Paris?"}`), &asked)
	_ = json.Unmarshal([]byte(`{"role":"assistant","content":null,"tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]}`), &answer)
	conversation := []message.Message{
		{Role: message.RoleSystem, Content: message.Text("Be brief.")}, asked, answer,
	}
	for _, call := range answer.Calls() {
		conversation = append(conversation, message.ToolResult(call, "12 °C"))
	}
	system, turns, err := message.AnthropicMessages(conversation)
	fmt.Printf("system %s %v\n", system, err)
	for _, turn := range turns {
		fmt.Printf("%s\n", turn)
	}
	// Output:
	// system "Be brief." <nil>
	// {"role":"user","content":"How warm is it in Paris?"}
	// {"role":"assistant","content":[{"type":"tool_use","id":"call_1","input":{"city":"Paris"},"name":"weather"}]}
	// {"role":"user","content":[{"type":"tool_result","content":"12 °C","tool_use_id":"call_1"}]}
}

// Messages of a model that calls tools, as the OpenAI API takes them.
func ExampleOpenAIMessages() {
	var answer message.Message
	_ = json.Unmarshal([]byte(`{"id":"msg_1","type":"message","role":"assistant","stop_reason":"tool_use","content":[
		{"type":"text","text":"I look it up."},
		{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Paris"}}]}`), &answer)
	messages, err := message.OpenAIMessages([]message.Message{answer, message.ToolResult(answer.Calls()[0], "12 °C")})
	fmt.Println(err)
	for _, m := range messages {
		fmt.Printf("%s\n", m)
	}
	// Output:
	// <nil>
	// {"role":"assistant","content":[{"type":"text","text":"I look it up."}],"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]}
	// {"role":"tool","content":"12 °C","tool_call_id":"toolu_1"}
}

// An expert says how an attempt ended with a status; a message that its predecessors can use is a lesson.
func ExampleNewExpert() {
	count := superstep.NewExpert("count", "Counts the words of what it is given. Returns a number.",
		func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			if len(a.Inputs) == 0 || a.Inputs[0].Text == "" {
				return job.WorkflowMessage{Status: job.InputDataError, Lesson: "give me a text"}, nil
			}
			if err := superstep.Spend(ctx, job.Usage{Tokens: 3}); err != nil { // before a call that costs as much
				return job.WorkflowMessage{}, err
			}
			return job.WorkflowMessage{Status: job.Success, Output: fmt.Sprint(len(strings.Fields(a.Inputs[0].Text)))}, nil
		})
	result, err := count.Graph().Invoke(context.Background(),
		job.Assignment{Job: "j", SubJob: "2", Expert: "count", Inputs: []job.Input{{SubJob: "1", Text: "one two three"}}})
	fmt.Println(result.Output.Status, result.Output.Output, result.Output.Usage.Tokens, err)
	// Output: SUCCESS 3 3 <nil>
}

// loudly is a planner: a [job.Planner].
type loudly struct{}

func (loudly) Plan(_ context.Context, req job.PlanRequest) (job.Draft, error) {
	return job.Draft{SubJobs: []job.DraftSubJob{
		{ID: "1", Goal: req.Job.Goal, Expert: "write"},
		{ID: "2", Goal: "make it loud", Expert: "shout", Dependencies: []string{"1"}},
	}}, nil
}

// A leader's planner divides a job, here always in the same way; its experts do the parts.
func ExampleLeader_Invoke() {
	write := superstep.NewExpert("write", "Writes a text about a subject.",
		func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			return job.WorkflowMessage{Status: job.Success, Output: "All about " + a.Goal}, nil
		})
	shout := superstep.NewExpert("shout", "Writes what it is given in capitals.",
		func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			return job.WorkflowMessage{Status: job.Success, Output: strings.ToUpper(a.Inputs[0].Text)}, nil
		})
	lead, err := superstep.NewLeader("press", loudly{}, write, shout)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := lead.Invoke(context.Background(), job.Job{Goal: "penguins"})
	fmt.Println(answer.Text, err)
	// Output: ALL ABOUT PENGUINS <nil>
}
