package rules_test

import (
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/approval/token"
)

// The gate of a worker, with the rules of the refund example: over 1000.00 two people of finance must approve, and not
// who asked for it.
func Example() {
	book, _ := rules.Open("../../examples/refund/approvals.yaml")
	private, _, _ := token.Generate(approval.Owner{Issuer: "sso"}, "")
	signer, _ := token.ParseSigner(private)
	keyring, _ := token.New(signer.Key())
	gate := &approval.Gate{Keys: keyring, Policy: book, Directory: book}

	action, _ := approval.Action{
		Tool: "payments.refund", Summary: "Refund 1200.00 of order 1815", Params: json.RawMessage(`{"order_id":"1815","amount":120000}`),
		Requester: "cleo", Permissions: []string{"refund.write"}, Approvers: []string{"group:finance"},
	}.Normal()
	reply := approval.Reply{Verdict: approval.VerdictApprove}
	var votes []approval.Vote
	for _, who := range []string{"cleo", "rita", "bob", "bob", "ana"} {
		signed, _ := signer.Sign(approval.Claims{
			Thread: "t", Question: "q", Approver: who, Digest: action.Digest(), ParamsHash: action.ParamsHash,
		})
		r, _ := gate.Reply(context.Background(), approval.ReplyCheck{
			Thread: "t", Question: "q", Action: action, Asked: action.Approvers, Token: signed, Votes: votes,
			Reply: reply,
		})
		if !r.Allowed {
			fmt.Println(r.Code+":", r.Reason)
			continue
		}
		votes = append(votes, r.Vote(reply))
		fmt.Printf("%s approves, %d of %d\n", r.By, len(votes), r.Need)
	}
	// Output:
	// same_person: cleo asks for it, so somebody else must approve it: over 1000.00 two of finance decide (rule "large refunds")
	// not_yours: "rita" is not asked; group:finance may answer
	// bob approves, 1 of 2
	// already_given: bob has answered already: another person must
	// ana approves, 2 of 2
}
