package superstep

import "fmt"

// KeyOption is what [WithKey] returns: an option of tasks, effect calls and questions.
type KeyOption interface {
	TaskOption
	CallOption
	QuestionOption
}

// WithKey names a call or a question within its node, where otherwise its position among those of the same name does.
// Use it when the order of calls depends on something that may change: a loop over a map, goroutines of your own. Two
// calls with the same key are the same call. The key is empty by mistake only, so that is an error.
func WithKey(key string) KeyOption { return keyOption{key, true} }

type keyOption struct {
	key   string
	given bool
}

func (k keyOption) applyTask(o *taskOptions)         { o.key = k }
func (k keyOption) applyCall(o *callOptions)         { o.key = k }
func (k keyOption) applyQuestion(o *questionOptions) { o.key = k }

// value returns the key, "" when none was given.
func (k keyOption) value() (string, error) {
	if k.given && k.key == "" {
		return "", fmt.Errorf("WithKey needs a key that is not empty: %w", ErrBadInput)
	}
	return k.key, nil
}
