// Package message holds chat messages as models and agents exchange them: [Message] with its [Content] and [ToolCall]s, read from
// and written as the JSON of LangChain, OpenAI and Anthropic. A state keeps them in a superstep.Messages channel.
package message
