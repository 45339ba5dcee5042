package message_test

import (
	"encoding/json"
	"fmt"

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
