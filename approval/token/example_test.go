package token_test

import (
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// A program that answers for people signs with a private key; workers verify with the public one.
func Example() {
	private, _, _ := token.Generate(approval.Owner{Person: "ana"}, "ana-2026-11") // as a rule once, into files
	signer, _ := token.ParseSigner(private)
	keyring, _ := token.New(signer.Key()) // on a worker: token.FromEnv

	action, _ := approval.Action{
		Tool: "payments.refund", Summary: "Refund 120.00 of order 1815", Params: json.RawMessage(`{"order":"1815","amount":120}`),
		Approvers: []string{"ana"},
	}.Normal()
	signed, _ := signer.Sign(approval.Claims{
		Thread: "order-1815", Question: "q1", Approver: "ana", Digest: action.Digest(), ParamsHash: action.ParamsHash,
	})

	gate := &approval.Gate{Keys: keyring}
	check := approval.ReplyCheck{
		Thread: "order-1815", Question: "q1", Action: action, Asked: action.Approvers, Token: signed,
		Reply: approval.Reply{Verdict: approval.VerdictApprove},
	}
	ruling, _ := gate.Reply(context.Background(), check)
	fmt.Println(ruling.Allowed, ruling.By)

	check.Thread = "order-1816"
	ruling, _ = gate.Reply(context.Background(), check)
	fmt.Println(ruling.Allowed, ruling.Code)
	// Output:
	// true ana
	// false wrong_thread
}
