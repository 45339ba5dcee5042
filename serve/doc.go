// Package serve answers the protocol of LangGraph's agent server for durable threads, so that the clients of that protocol work on
// them: chat pages, inboxes, and the SDKs of LangGraph in Python and JavaScript. It is a [net/http.Handler]; "superstep serve" is a
// program around it.
//
//	s, err := serve.Handler(client, serve.Config{Temporal: temporal})
//	defer s.Close()
//	http.Handle("/", s)
//
// Callers are asked who they are where Config.Authenticate says how: see package access. What they make is theirs.
//
// States, checkpoints and questions are the threads' own. What the protocol has beside them, metadata and the list of runs, is in a
// workflow of each thread: see package record. A server keeps nothing that another one lacks.
//
// # The files, in order of reading
//
//	fault         refusals, and what they look like
//	message       messages as LangChain writes them
//	rendering     what a graph's values look like to clients
//	shape         what fields of a body have to say
//	body          the bodies of requests
//	index         the threads that this process knows of
//	server        the server
//	guard         from where one may ask, and how much
//	visit         who asks, and what is theirs
//	assistants    graphs as clients see them
//	drawing       the nodes and edges of a graph
//	schemas       what its values look like
//	request       a run's request as an invocation of a graph
//	question      questions and answers as LangGraph writes them
//	snapshot      states and checkpoints
//	inner         those of subgraphs
//	extract       parts of threads that a search wants
//	threads       threads
//	state         reading and writing states, and threads that are made with one
//	asking        asking for a run, and waiting for its end
//	cancels       ending runs, and threads
//	runs          runs
//	crons         runs that are asked for by a calendar
//	versions      assistants of one's own, and their versions
//	due           finding them, and asking for what has come due
//	store         items of the graphs' long-term memory
//	narrator      a run's parts as its events
//	subscription  which of its events a client wants
//	commands      commands of the second version
//	sse           server-sent events, and their numbers
//	eventstream   its events, over the runs of a thread
//	callbacks     the callback events of a run
//	events        what a run streams, as clients see it
//	stream        streams of runs
//	threadstream  streams of threads, over their runs
//	contract      what paths take and answer, and what they do to whose things
//	openapi       the description of the paths
//	meta          what a server says of itself
//	handler       the server with all its paths
package serve
