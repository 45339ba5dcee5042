// Package figures computes with the birds of the research example: it reads them from CSV, describes one species,
// checks such a description against the birds, and writes it all down. Its functions depend on their arguments only.
package figures
