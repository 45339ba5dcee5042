package main

import "superstep.dev/test/conformance/trace"

// source is the text of one case and where it stands.
type source struct {
	// place is the file, with the line when the file holds a case on every line.
	place string
	text  []byte
	// doc is the decoded case; err says why it is nil.
	doc *caseDoc
	err error
}

// name is the case's name, or its place when it has none that can be read.
func (s *source) name() string {
	if s.doc == nil {
		return s.place
	}
	return s.doc.Name
}

// loadCases reads the cases of files and folders, in order of place. A case that cannot be decoded is among them with
// its error; a path without cases is an error.
func loadCases(paths []string) ([]source, error) {
	texts, err := trace.Read(paths)
	if err != nil {
		return nil, err
	}
	out := make([]source, len(texts))
	for i := range texts {
		out[i] = newSource(texts[i].Place(), texts[i].Bytes)
	}
	return out, nil
}

func newSource(place string, text []byte) source {
	doc, err := decodeCase(text)
	return source{place: place, text: text, doc: doc, err: err}
}
