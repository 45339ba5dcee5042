package research

// Experts are the leader's experts, for tests of one of them.
var Experts = experts

// LeaderOf is FromEnv with an environment of its own.
var LeaderOf = fromEnv
