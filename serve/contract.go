package serve

import (
	"reflect"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
)

// contract is what a path takes and answers, and what a request to it does. A path without one is refused where callers are asked who
// they are.
type contract struct {
	// open says that everybody may ask, whoever they are.
	open bool
	does map[access.Kind]access.Action
	// query are the names of what the query may say, and body what the request has, nil for nothing.
	query []string
	body  reflect.Type
	// answer is what a good answer has, nil for none; status is its status, 0 for 200.
	answer reflect.Type
	status int
	// stream says that the answer is a stream of events, and text that it is a text of that type.
	stream bool
	text   string
}

func (r route) pattern() string { return r.method + " " + r.path }

// of is a type, for a contract.
func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

func on(kind access.Kind, do access.Action) map[access.Kind]access.Action {
	return map[access.Kind]access.Action{kind: do}
}

const noContent = 204

// The contracts of the paths, by their patterns.
var contracts = map[string]contract{
	"GET /ok":           {open: true, answer: of[okOut]()},
	"GET /info":         {open: true, answer: of[infoOut]()},
	"GET /metrics":      {open: true, query: []string{"format"}, text: "text/plain"},
	"GET /openapi.json": {open: true, answer: of[object]()},
	"GET /docs":         {open: true, text: "text/html"},

	"POST /assistants":                                     {does: on(access.Assistants, access.Create), body: of[assistantBody](), answer: of[assistant.Assistant]()},
	"POST /assistants/search":                              {does: on(access.Assistants, access.Search), body: of[assistantSearch](), answer: of[[]assistant.Assistant]()},
	"POST /assistants/count":                               {does: on(access.Assistants, access.Search), body: of[assistantCount](), answer: of[int]()},
	"GET /assistants/{assistant_id}":                       {does: on(access.Assistants, access.Read), answer: of[assistant.Assistant]()},
	"PATCH /assistants/{assistant_id}":                     {does: on(access.Assistants, access.Update), body: of[assistantBody](), answer: of[assistant.Assistant]()},
	"DELETE /assistants/{assistant_id}":                    {does: map[access.Kind]access.Action{access.Assistants: access.Delete, access.Threads: access.Delete}, query: []string{"delete_threads"}, status: noContent},
	"POST /assistants/{assistant_id}/versions":             {does: on(access.Assistants, access.Read), body: of[versionSearch](), answer: of[[]assistant.Assistant]()},
	"POST /assistants/{assistant_id}/latest":               {does: on(access.Assistants, access.Update), body: of[latestBody](), answer: of[assistant.Assistant]()},
	"GET /assistants/{assistant_id}/graph":                 {does: on(access.Assistants, access.Read), query: []string{"xray"}, answer: of[drawing]()},
	"GET /assistants/{assistant_id}/schemas":               {does: on(access.Assistants, access.Read), answer: of[schemasOut]()},
	"GET /assistants/{assistant_id}/subgraphs":             {does: on(access.Assistants, access.Read), query: []string{"recurse"}, answer: of[map[string]schemasOut]()},
	"GET /assistants/{assistant_id}/subgraphs/{namespace}": {does: on(access.Assistants, access.Read), query: []string{"recurse"}, answer: of[map[string]schemasOut]()},

	"POST /threads":                  {does: on(access.Threads, access.Create), body: of[threadBody](), answer: of[threadOut]()},
	"POST /threads/search":           {does: on(access.Threads, access.Search), body: of[threadSearch](), answer: of[[]threadOut]()},
	"POST /threads/prune":            {does: on(access.Threads, access.Delete), body: of[pruneBody](), answer: of[prunedOut]()},
	"POST /threads/count":            {does: on(access.Threads, access.Search), body: of[threadCount](), answer: of[int]()},
	"GET /threads/{thread_id}":       {does: on(access.Threads, access.Read), answer: of[threadOut]()},
	"PATCH /threads/{thread_id}":     {does: on(access.Threads, access.Update), body: of[metadataBody](), answer: of[threadOut]()},
	"DELETE /threads/{thread_id}":    {does: on(access.Threads, access.Delete), status: noContent},
	"POST /threads/{thread_id}/copy": {does: on(access.Threads, access.Create), answer: of[threadOut]()},

	"GET /threads/{thread_id}/state":                 {does: on(access.Threads, access.Read), query: []string{"subgraphs"}, answer: of[stateOut]()},
	"GET /threads/{thread_id}/state/{checkpoint_id}": {does: on(access.Threads, access.Read), query: []string{"subgraphs"}, answer: of[stateOut]()},
	"POST /threads/{thread_id}/state/checkpoint":     {does: on(access.Threads, access.Read), body: of[stateAtBody](), answer: of[stateOut]()},
	"POST /threads/{thread_id}/state":                {does: on(access.Threads, access.Update), body: of[updateBody](), answer: of[updateOut]()},
	"GET /threads/{thread_id}/history":               {does: on(access.Threads, access.Read), query: []string{"limit", "before"}, answer: of[[]stateOut]()},
	"POST /threads/{thread_id}/history":              {does: on(access.Threads, access.Read), body: of[historyBody](), answer: of[[]stateOut]()},

	"POST /threads/{thread_id}/runs":                 {does: on(access.Threads, access.Run), body: of[runRequest](), answer: of[runOut]()},
	"POST /threads/{thread_id}/runs/wait":            {does: on(access.Threads, access.Run), body: of[runRequest](), answer: of[object]()},
	"POST /threads/{thread_id}/runs/stream":          {does: on(access.Threads, access.Run), body: of[runRequest](), stream: true},
	"POST /runs":                                     {does: on(access.Threads, access.Run), body: of[runRequest](), answer: of[runOut]()},
	"POST /runs/wait":                                {does: on(access.Threads, access.Run), body: of[runRequest](), answer: of[object]()},
	"POST /runs/stream":                              {does: on(access.Threads, access.Run), body: of[runRequest](), stream: true},
	"POST /runs/batch":                               {does: on(access.Threads, access.Run), body: of[[]runRequest](), answer: of[[]runOut]()},
	"POST /runs/cancel":                              {does: on(access.Threads, access.Run), query: []string{"action"}, body: of[cancelBody](), status: noContent},
	"GET /threads/{thread_id}/runs":                  {does: on(access.Threads, access.Read), query: []string{"limit", "offset", "status", "select"}, answer: of[[]runOut]()},
	"GET /threads/{thread_id}/runs/{run_id}":         {does: on(access.Threads, access.Read), answer: of[runOut]()},
	"DELETE /threads/{thread_id}/runs/{run_id}":      {does: on(access.Threads, access.Run), status: noContent},
	"GET /threads/{thread_id}/runs/{run_id}/join":    {does: on(access.Threads, access.Read), query: []string{"cancel_on_disconnect"}, answer: of[object]()},
	"POST /threads/{thread_id}/runs/{run_id}/cancel": {does: on(access.Threads, access.Run), query: []string{"action", "wait"}, status: 202},
	"GET /threads/{thread_id}/runs/{run_id}/stream":  {does: on(access.Threads, access.Read), query: []string{"stream_mode", "cancel_on_disconnect"}, stream: true},
	"GET /threads/{thread_id}/stream":                {does: on(access.Threads, access.Read), query: []string{"stream_modes"}, stream: true},

	"POST /runs/crons":                     {does: on(access.Crons, access.Create), body: of[cronBody](), answer: of[cron.Cron]()},
	"POST /threads/{thread_id}/runs/crons": {does: map[access.Kind]access.Action{access.Crons: access.Create, access.Threads: access.Run}, body: of[cronBody](), answer: of[cron.Cron]()},
	"POST /runs/crons/search":              {does: on(access.Crons, access.Search), body: of[cronSearch](), answer: of[[]cron.Cron]()},
	"POST /runs/crons/count":               {does: on(access.Crons, access.Search), body: of[cronCount](), answer: of[int]()},
	"GET /runs/crons/{cron_id}":            {does: on(access.Crons, access.Read), answer: of[cron.Cron]()},
	"PATCH /runs/crons/{cron_id}":          {does: on(access.Crons, access.Update), body: of[cronBody](), answer: of[cron.Cron]()},
	"DELETE /runs/crons/{cron_id}":         {does: on(access.Crons, access.Delete), status: noContent},

	"POST /threads/{thread_id}/commands":      {does: on(access.Threads, access.Run), body: of[commandBody](), answer: of[commandAnswer]()},
	"POST /threads/{thread_id}/stream/events": {does: on(access.Threads, access.Read), body: of[subscription](), stream: true},

	"PUT /store/items":         {does: on(access.Store, access.Update), body: of[itemBody](), status: noContent},
	"GET /store/items":         {does: on(access.Store, access.Read), query: []string{"namespace", "key", "refresh_ttl"}, answer: of[object]()},
	"DELETE /store/items":      {does: on(access.Store, access.Delete), body: of[itemName](), status: noContent},
	"POST /store/items/search": {does: on(access.Store, access.Search), body: of[itemSearch](), answer: of[object]()},
	"POST /store/namespaces":   {does: on(access.Store, access.Search), body: of[namespaceSearch](), answer: of[object]()},
}
