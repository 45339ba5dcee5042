// Package planner has two planners for a leader: [OpenAI] asks a model behind any endpoint that speaks the OpenAI chat
// API, [Rules] follows rules written in Go and needs no key, for demos, tests, and jobs whose shape is known.
//
// Whether a plan can be used is for the job to say (job.CheckPlan): it comes back with what was wrong as the lesson of one
// more request. So a planner fails in two ways only. A *job.BadPlanError says
// that an answer came that is no plan, and costs one of the job's plan attempts; the draft returned with it holds what the
// answer cost. An [*Error] says that no answer came, and costs none.
package planner
