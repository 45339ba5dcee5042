// Package endpoint lets people who have no keys read what package secret encrypted: an HTTP [Handler] that decodes for Temporal's
// web UI, its command line and those of Superstep, as Temporal's remote codecs do, and the [Remote] that asks one. Workers and
// programs never need it: they have keys.
package endpoint
