package payments

// Stats counts what reached the service since its database was made. The
// figures are stored with the money, so a restart keeps them.
type Stats struct {
	Refunds       Traffic `json:"refunds"`
	Reversals     Traffic `json:"reversals"`
	Notifications Traffic `json:"notifications"`
}

// Traffic counts one kind of write and the look-ups of it.
type Traffic struct {
	// Requests is how many writes were received: first ones and repeats, ones
	// answered and ones refused, failed by a fault or never answered.
	Requests int64 `json:"requests"`
	// Lookups is how many times one was looked for by its key.
	Lookups int64 `json:"lookups"`
	// Committed is how many writes took effect.
	Committed int64 `json:"committed"`
	// Keys is how many different idempotency keys were seen.
	Keys int64 `json:"keys"`
	// ByKey holds the same counts for each key: the asked-for one, or the 1000
	// seen last.
	ByKey map[string]KeyTraffic `json:"by_key"`
}

// KeyTraffic counts what was done under one idempotency key.
type KeyTraffic struct {
	Requests  int64 `json:"requests"`
	Lookups   int64 `json:"lookups"`
	Committed int64 `json:"committed"`
}

// statsKeys bounds ByKey in an answer that was not narrowed to one key.
const statsKeys = 1000
