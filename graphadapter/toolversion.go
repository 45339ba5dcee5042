package graphadapter

// ToolVersion returns the version of the effect of that name, of this graph or of one below it; false when none is
// registered.
func (g *Graph) ToolVersion(effect string) (string, bool) {
	if e, ok := g.Effects[effect]; ok {
		return e.Version, true
	}
	for _, name := range sortedNames(g.Subgraphs) {
		if version, ok := g.Subgraphs[name].ToolVersion(effect); ok {
			return version, true
		}
	}
	return "", false
}
