package superstep

import "superstep.dev/graphadapter"

func (c *compiler) checkEffects() {
	seen := map[string]string{}
	for _, d := range c.effects {
		if d.effect == nil {
			c.fail("", d.call, "the effect is nil")
			continue
		}
		name := d.effect.effectName()
		if err := d.effect.problem(); err != nil {
			c.fail("", d.call, "%v", err)
		}
		if first, twice := seen[name]; twice {
			c.fail("", d.call, "the effect %q is already added at %s", name, first)
		}
		seen[name] = d.call
	}
}

func (c *compiler) assembleEffects(g *graphadapter.Graph) {
	for _, d := range c.effects {
		g.Effects[d.effect.effectName()] = d.effect.adapter()
	}
}
