package runtime

import (
	"maps"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// Rest is how a thread's run rests, or has ended.
type Rest struct {
	thread.View
	// Long are the lists of the output that its view does not have: to make a text of a long list costs what is in it, and who has
	// decoded it before needs none.
	Long map[string]pregel.Held
}

// Resting is a view that has all of the output.
func Resting(v thread.View, err error) (Rest, error) { return Rest{View: v}, err }

// Whole is the view with all of the output.
func (r Rest) Whole() thread.View {
	v := r.View
	if len(r.Long) == 0 {
		return v
	}
	v.Output = maps.Clone(v.Output)
	if v.Output == nil {
		v.Output = map[string]pregel.Value{}
	}
	//workflowcheck:ignore A map is made of a map.
	for name, list := range r.Long {
		v.Output[name] = list.Value()
	}
	return v
}

// Held is the output, none of which is text that was not text before.
func (r Rest) Held() map[string]pregel.Held {
	held := pregel.HoldAll(r.Output)
	maps.Copy(held, r.Long)
	return held
}
