// Package store is long-term memory across threads, as LangGraph's Store: items, which are JSON objects, under a namespace and a key.
// A [Store] has the rules; where items lie is a [Backend]'s: [NewMemory] for one process, package store/sqlite for the programs of a
// machine, package store/postgres for those of several. Package store/storetest proves a Backend.
//
// A node gets the store of its worker by superstep.StoreFrom: what it puts there is an effect under a key of its task, which a crash
// makes neither lost nor twice. Everybody else uses the Store that was opened.
//
//	store.go       Store and its calls
//	options.go     what they take
//	item.go        items, and the bounds of names and values
//	filter.go      what a filter means
//	text.go        which texts of an item are embedded
//	rank.go        how near two vectors are
//	backend.go     what a database has to do
//	memory.go      a database in memory
//	errors.go      errors
package store
