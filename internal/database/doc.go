// Package database keeps the items of a store in SQL tables. What SQLite and PostgreSQL say in different words is a [Dialect]'s; all else
// is written once, here.
//
//	database.go    the backend: reading and writing items
//	search.go      searching them
//	schema.go      making the tables, and bringing them up to date
package database
