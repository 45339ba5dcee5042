package main

// leadsAJob has a job planned, approves its plan, steers it, and stops it.
func (p *program) leadsAJob() {
	id := "job/steered-" + p.suffix // a job's workflow is named after it
	run := p.start("superstep.leader", id, object{"leader": p.leader, "job": object{"id": "steered-" + p.suffix, "goal": "write a letter",
		"policy": object{"approve": "first"}, "budget": object{"attempts": 10}}})
	planned := p.until(id, "job", "plan", func(v object) bool { return v["proposed"] != nil })
	_, _ = p.update(id, "job.plan", object{"plan_version": 99, "verdict": "approve"}) // another one waits
	_, err := p.update(id, "job.plan", object{"plan_version": planned["plan_version"], "verdict": "approve", "by": "ann"})
	must(err)
	p.until(id, "job", "first subjob", func(v object) bool { return v["finished"] == float64(1) })
	p.question(id + "/s/p1-2/a1") // an attempt is a thread of its own
	p.query(id, "job")
	p.query(id, "board")
	p.query(id, "job_events", 0)
	_, err = p.update(id, "job.budget", object{"budget": object{"attempts": 50}, "by": "ann"})
	must(err)
	_, err = p.update(id, "job.experts", object{"add": []any{object{"name": "second", "description": "drafts too", "graph": "clerk"}}, "by": "ann"})
	must(err)
	_, err = p.update(id, "job.retry", object{"subjob": "p1-1", "lesson": "shorter", "by": "ann"})
	must(err)
	_, err = p.update(id, "job.stop", object{"reason": "enough", "by": "ann"})
	must(err)
	p.result(run)
}

// failsAJob says of a job that it has failed.
func (p *program) failsAJob() {
	id := "job/failed-" + p.suffix
	run := p.start("superstep.leader", id, object{"leader": p.leader, "job": object{"id": "failed-" + p.suffix, "goal": "write a letter"}})
	p.until(id, "job", "subjob", func(v object) bool { return v["finished"] == float64(1) })
	_, err := p.update(id, "job.fail", object{"subjob": "p1-2", "reason": "nobody checks", "by": "ann"})
	must(err)
	p.result(run)
}
