package graphadapter

import (
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// LedgerFrame bounds what the stored form of a ledger takes beside its entries, in bytes.
const LedgerFrame = 160

// FitLedger returns as much of a ledger as has at most that many bytes in its stored form, in its order; whole says that
// nothing is missing. Effects go first, if need be without parameters and receipt: that a call was started, and that the
// outside has it, is what nobody can find out by running the node again. Memoised results fill the rest.
func FitLedger(entries []ledger.Entry, most int) (fitted []ledger.Entry, whole bool) {
	total := LedgerFrame
	sizes := make([]int, len(entries))
	for i, e := range entries {
		sizes[i] = EntrySize(e)
		total += sizes[i]
	}
	if total <= most || len(entries) == 0 {
		return entries, true
	}
	kept := make([]*ledger.Entry, len(entries))
	left := most - LedgerFrame
	put := func(i int, e ledger.Entry, size int) {
		if size <= left {
			left -= size
			kept[i] = &e
		}
	}
	for i, e := range entries {
		if e.Outside() {
			put(i, e.Slim(), EntrySize(e.Slim()))
		}
	}
	for i, e := range entries {
		if kept[i] != nil {
			put(i, e, sizes[i]-EntrySize(*kept[i]))
		}
	}
	for i, e := range entries {
		if !e.Outside() {
			put(i, e, sizes[i])
		}
	}
	for _, e := range kept {
		if e != nil {
			fitted = append(fitted, *e)
		}
	}
	return fitted, false
}

// EntrySize is what an entry takes in a stored ledger, in bytes.
func EntrySize(e ledger.Entry) int {
	v, err := jsontext.Encode(e)
	if err != nil {
		return len(e.Params) + len(e.Result) + LedgerFrame // not JSON: refused when the ledger is encoded
	}
	return len(v) + 1
}

// SlimLedger returns a stored ledger without parameters, results and receipts. Of every call it says how far it got.
func SlimLedger(stored pregel.Value) (pregel.Value, error) {
	entries, between, err := DecodeCarryOver(stored)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		entries[i] = e.Slim()
	}
	return EncodeCarryOver(entries, between)
}
