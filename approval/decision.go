package approval

import (
	"encoding/json"
	"time"
)

// Verdict is what was decided about an action.
type Verdict string

const (
	VerdictApprove Verdict = "approve"
	VerdictReject  Verdict = "reject"
	// VerdictEdit proposes other parameters, which are a new question.
	VerdictEdit Verdict = "edit"
	// VerdictExpired: nobody answered in time, and silence denies. People cannot give it.
	VerdictExpired Verdict = "expired"
)

// Reply is what one person answers: the value of the answer to an approval's question.
type Reply struct {
	Verdict Verdict `json:"verdict"`
	// Params are the parameters proposed, with VerdictEdit only.
	Params json.RawMessage `json:"params,omitempty"`
	// Reason is for the record: at most 1,000 bytes.
	Reason string `json:"reason,omitempty"`
}

// ReplySchema is the JSON schema of a [Reply].
var ReplySchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["verdict"],"properties":{` +
	`"verdict":{"type":"string","enum":["approve","reject","edit"],"description":"approve: do exactly this; reject: do ` +
	`not; edit: propose other parameters, which are asked about anew"},"params":{"description":"with edit: the ` +
	`parameters proposed"},"reason":{"type":"string","maxLength":1000,"description":"for the record"}}}`)

// Vote is one person's reply that a [Gate] allowed.
type Vote struct {
	By      string    `json:"by"`
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Token   string    `json:"token,omitempty"`  // the token's id, never the token
	KeyID   string    `json:"key_id,omitempty"` // of the key that signed the token
	At      time.Time `json:"at"`
	Policy  string    `json:"policy,omitempty"` // the version of policy and directory that allowed it
}

// Lapsed is the entry of an audit that says that the vote counts no more.
func (v Vote) Lapsed(question string, a Action) Entry {
	return Entry{Kind: KindLapsed, Question: question, Who: v.By, Verdict: v.Verdict, ParamsHash: a.ParamsHash, Token: v.Token,
		KeyID: v.KeyID, Code: CodeLapsed, Reason: "it was given at " + stamp(v.At) + ", too long ago to count"}
}

// Decision is the answer that a task gets: it is bound to what was asked.
type Decision struct {
	Verdict  Verdict `json:"verdict"`
	Question string  `json:"question"`
	// Digest is that of the action that was decided on, see [Action.Digest]; ParamsHash is its parameters'.
	Digest     string `json:"digest"`
	ParamsHash string `json:"params_hash"`
	// Params are the parameters to go on with, when they are not those that the task asked about first.
	Params json.RawMessage `json:"params,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Votes  []Vote          `json:"votes,omitempty"`
	// At is when it was made: by the last vote, or by silence.
	At time.Time `json:"at,omitzero"`
}
