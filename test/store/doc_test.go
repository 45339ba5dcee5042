// Package store_test tests the store from where nodes and processes use it: what a node puts is written once, whatever crashes.
package store_test
