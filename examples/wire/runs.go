package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// asksTheDesk asks the workers of a task queue what they serve. A desk is a workflow that has ended: asking it leaves no event.
func (p *program) asksTheDesk() {
	id := "superstep.desk/" + p.queue
	run, err := p.client.ExecuteWorkflow(p.ctx, client.StartWorkflowOptions{ID: id, TaskQueue: p.queue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, "superstep.desk")
	must(err)
	must(run.Get(p.ctx, nil))
	fmt.Printf("\nworkflow superstep.desk %s\n", id)
	p.query(id, "admit", object{"graph": p.graph, "input": object{"do": "ask"}})
	p.query(id, "admit", object{"graph": p.graph, "input": object{"do": 7}})
	p.query(id, "admit", object{"leader": p.leader})
}

// answersAQuestion starts a run, answers what it asks, and reads its result.
func (p *program) answersAQuestion() {
	thread := "ask-" + p.suffix
	run := p.start("superstep.graph", thread, object{"graph": p.graph, "input": object{"do": "ask"}})
	question := p.question(thread)
	p.query(thread, "state")
	p.query(thread, "outline")
	p.query(thread, "question", question)
	p.query(thread, "history")
	p.query(thread, "graph")
	p.query(thread, "handoff")
	p.listed(thread)
	_, _ = p.update(thread, "resume", object{"id": "r-1", "question": question, "value": "perhaps"}) // it wants true or false
	_, _ = p.update(thread, "resume", object{"id": "r-2", "question": "q-0", "value": true})
	p.signal(thread, "resume", object{"id": "r-3", "question": question, "value": "no boolean"})
	p.until(thread, "outline", "refusal", func(s object) bool { return list(s["refused"]) != nil })
	reply, err := p.update(thread, "resume", object{"id": "r-4", "question": question, "value": true, "by": "ann"})
	must(err)
	fmt.Println("taken by the node", reply["node"])
	p.goesOn(thread, p.result(run), run.GetRunID())
}

// goesOn gives a thread whose last run has ended new input: the next run starts with what the last one left.
func (p *program) goesOn(thread string, left object, last string) {
	input := object{"graph": p.graph, "input": object{"do": "ask"}, "previous": last}
	for _, field := range []string{"spec", "state", "life", "lines", "behind_ms"} {
		if left[field] != nil {
			input[field] = left[field]
		}
	}
	input["suspects"] = left["suspect"]
	run := p.start("superstep.graph", thread, input)
	p.signal(thread, "resume", object{"id": "r-5", "question": p.question(thread), "value": false})
	p.result(run)
}

// takesTurns starts a run and waits until it rests by one call, and answers what it asks by another.
func (p *program) takesTurns() {
	thread := "turn-" + p.suffix
	turn := object{"id": "i-" + p.suffix, "graph": p.graph, "input": object{"do": "ask"}, "rest": true}
	start := object{"graph": p.graph, "id": turn["id"], "input": turn["input"]}
	handle, err := p.client.UpdateWithStartWorkflow(p.ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: p.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
			ID: thread, TaskQueue: p.queue, WorkflowTaskTimeout: 2 * time.Second,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, "superstep.graph", start),
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: thread, UpdateID: turn["id"].(string), UpdateName: "invoke", Args: []any{turn},
			WaitForStage: client.WorkflowUpdateStageCompleted},
	})
	must(err)
	var reply object
	must(handle.Get(p.ctx, &reply))
	fmt.Printf("\nworkflow superstep.graph %s\n  sent   %s\nupdate invoke\n  sent   %s\n  got    %s\n", thread, text(start), text(turn), text(reply))
	question := list(reply["stands"].(object)["state"].(object)["questions"])[0].(object)["id"]
	reply, err = p.update(thread, "resume", object{"id": "r-1", "question": question, "value": true, "by": "ann", "rest": true})
	must(err)
	fmt.Println("the run is", reply["rest"].(object)["status"])
}

// listed prints what the server's index has of a thread: any list of workflows shows it.
func (p *program) listed(thread string) {
	described, err := p.client.DescribeWorkflowExecution(p.ctx, thread, "")
	must(err)
	info := described.GetWorkflowExecutionInfo()
	for about, fields := range map[string][]string{
		"memo":       slices.Sorted(maps.Keys(info.GetMemo().GetFields())),
		"attributes": slices.Sorted(maps.Keys(info.GetSearchAttributes().GetIndexedFields())),
	} {
		fmt.Printf("%s of %s\n  got    %s\n", about, thread, text(fields))
	}
}

// keepsARunOpen gives one run one thing after the other to do. It is held when it fails.
func (p *program) keepsARunOpen() {
	thread := "open-" + p.suffix
	run := p.start("superstep.graph", thread, object{"graph": p.graph, "input": object{"do": "ask"}, "keep_open_ms": -1, "hold": true,
		"durability": "async", "requester": "rita"})
	question := p.question(thread)
	_, err := p.update(thread, "pause", object{"id": "p-1", "by": "ann", "reason": "the books are closed"})
	must(err)
	_, _ = p.update(thread, "invoke", object{"id": "i-1", "input": object{"do": "ask"}}) // it is paused
	p.signal(thread, "pause", object{"id": "p-2", "by": "ann", "unpause": true})
	p.until(thread, "outline", "end of the pause", func(s object) bool { return s["paused"] == nil })
	p.signal(thread, "resume", object{"id": "r-1", "question": question, "value": false})
	finished := func(s object) bool { return s["status"] == "finished" }
	p.until(thread, "outline", "end", finished)
	_, _ = p.update(thread, "resume", object{"id": "r-2", "question": question, "value": true}) // too late
	_, _ = p.update(thread, "retry", object{"id": "t-1"})                                       // nothing failed
	_, _ = p.update(thread, "invoke", object{"id": "i-0", "begun": true})                       // the run has begun with another one

	_, err = p.update(thread, "invoke", object{"id": "i-2", "input": object{"do": "fail"}})
	must(err)
	failed := func(s object) bool { return s["status"] == "failed" }
	p.until(thread, "outline", "failure", failed)
	_, err = p.update(thread, "retry", object{"id": "t-2", "by": "ann", "reason": "once more"})
	must(err)
	p.until(thread, "outline", "second failure", failed)
	_, _ = p.update(thread, "update_state", object{"id": "u-1", "edits": []any{}}) // nothing to do
	_, err = p.update(thread, "update_state", object{"id": "u-2", "edits": []any{[]any{
		object{"values": []any{object{"channel": "amount", "value": 5}}, "as_node": "read"}}}})
	must(err)
	_, err = p.update(thread, "drain", object{"id": "d-1", "reason": "a deploy"})
	must(err)
	_, err = p.update(thread, "invoke", object{"id": "i-3"}) // it goes on where it stands
	must(err)
	_, err = p.update(thread, "rest", object{"id": "w-1"}) // the argument is for the id alone
	must(err)
	p.until(thread, "outline", "end", finished)
	p.signal(thread, "cancel", object{"id": "c-1", "mode": "keep", "reason": "enough", "by": "ann"})
	p.result(run)
}

// sendsEvents sends an event that nobody waits for yet, and one that a node waits for.
func (p *program) sendsEvents() {
	thread := "wait-" + p.suffix
	run := p.start("superstep.graph", thread, object{"graph": p.graph, "input": object{"do": "wait"}})
	p.until(thread, "outline", "wait", func(s object) bool { return list(s["waits"]) != nil })
	p.signal(thread, "event", object{"id": "e-1", "name": "parcel.left", "value": "Rome"})
	p.until(thread, "outline", "kept event", func(s object) bool { return list(s["kept"]) != nil })
	_, err := p.update(thread, "event", object{"id": "e-2", "name": "parcel.arrived", "value": "Oslo"})
	must(err)
	p.result(run)
}

// asksForAnApproval looks at a question of which a gate decides who may answer it, and is nobody who may.
func (p *program) asksForAnApproval() {
	thread := "approve-" + p.suffix
	run := p.start("superstep.graph", thread, object{"graph": p.graph, "input": object{"do": "approve", "amount": 250}})
	question := p.question(thread)
	p.signal(thread, "superstep.viewed", object{"question": question, "by": "ann"})
	_, _ = p.update(thread, "resume", object{"id": "a-1", "question": question, "value": object{"verdict": "approve"}, "by": "ann", "token": "none"})
	p.query(thread, "audit")
	_, err := p.update(thread, "cancel", object{"id": "c-1", "mode": "drop", "reason": "nobody may", "by": "ann"})
	must(err)
	p.result(run)
}

// isRefused starts runs that cannot begin, or fail.
func (p *program) isRefused() {
	p.result(p.start("superstep.graph", "typo-"+p.suffix, object{"graph": p.graph, "inputs": object{"do": "ask"}}))
	p.result(p.start("superstep.graph", "mode-"+p.suffix, object{"graph": p.graph, "input": object{"do": "ask"}, "durability": "never"}))
	p.result(p.start("superstep.graph", "fail-"+p.suffix, object{"graph": p.graph, "input": object{"do": "fail"}}))
	p.result(p.start("superstep.graph", "short-"+p.suffix, object{"graph": p.graph, "input": object{"do": "ask"}, "options": object{"recursion_limit": 1}}))
}
