// Package guard keeps the requests of effects from being sent after the time of their call: an http.RoundTripper asks before a
// request begins, before each piece of its body, and before each write to the network.
package guard
