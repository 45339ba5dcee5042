package superstep

import (
	"fmt"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/draw"
)

// The formats of [Draw].
const (
	DrawText    = "text"
	DrawMermaid = "mermaid"
	DrawDOT     = "dot"
)

// Draw returns a picture of a graph: text for a terminal, Mermaid for a web page, or DOT for Graphviz. Conditional
// edges are dashed (⇢ in text); those that declare no target lead to "any". Error handlers and breakpoints are shown.
// Ways that a node takes by a Command are not part of a Spec and not shown. An unknown format is [ErrBadInput].
func Draw(spec *pregel.Spec, format string) (string, error) {
	switch format {
	case DrawText:
		return draw.Text(spec), nil
	case DrawMermaid:
		return draw.Mermaid(spec), nil
	case DrawDOT:
		return draw.DOT(spec), nil
	}
	return "", &Error{Kind: ErrBadInput, Graph: spec.Name,
		Message: fmt.Sprintf("unknown format %q: there are %s, %s and %s", format, DrawText, DrawMermaid, DrawDOT)}
}
