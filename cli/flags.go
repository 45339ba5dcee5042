package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// flagError says in the user's terms what is wrong with a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return &usageError{message: err.Error(), err: err}
	}
	flag := invalid.GetFlag()
	wanted := map[string]string{
		"int":      "a whole number",
		"bool":     "true or false",
		"duration": "a duration, for instance 30s or 2m",
	}[flag.Value.Type()]
	if wanted == "" {
		return &usageError{message: err.Error(), err: err}
	}
	return usagef("--%s %s is not %s", flag.Name, quoted(invalid.GetValue()), wanted)
}
