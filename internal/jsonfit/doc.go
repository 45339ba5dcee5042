// Package jsonfit decodes JSON into Go values, keeps them decoded, says in a person's words what does not fit, and makes JSON schemas of Go
// types.
package jsonfit
