package protocol

import "superstep.dev/graphadapter/life"

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest = life.Answer

// ResumeReply is the outcome of an accepted answer.
type ResumeReply = life.AnswerReply

// AnswerRefusal says why a reply to an approval does not count.
type AnswerRefusal = life.Ruling

// ViewRequest is the argument of SignalViewed. Nobody checks who By is.
type ViewRequest = life.View
