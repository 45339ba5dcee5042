package sqlite

import "superstep.dev/store"

// OpenWith is Open with a pragma more.
func OpenWith(path, pragma string) (*store.Store, error) {
	return open(path, store.Options{}, []string{pragma})
}
