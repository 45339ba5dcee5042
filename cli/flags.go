package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// once makes the flags of a command that take one value refuse a second one that differs: nobody can tell which of the two
// was meant. Those of the connection and the output, which wrappers set and their users change, are not a command's own.
func once(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if _, many := f.Value.(pflag.SliceValue); !many {
			f.Value = &onceValue{Value: f.Value}
			if f.DefValue == "0s" { // help names no default that is zero, which it tells by the value's own type
				f.DefValue = "0"
			}
		}
	})
}

// onceValue is a flag's value that is given once.
type onceValue struct {
	pflag.Value
	given []string
}

// Set implements pflag.Value.
func (v *onceValue) Set(text string) error {
	if v.given = append(v.given, text); v.given[0] != text {
		return &twiceError{v.given[0], text}
	}
	return v.Value.Set(text)
}

// twiceError is a flag that was given two values.
type twiceError struct{ first, second string }

// Error implements error.
func (e *twiceError) Error() string {
	return "is given twice, as " + quoted(e.first) + " and as " + quoted(e.second)
}

// flagError says in the user's terms what is wrong with a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return &usageError{message: err.Error(), err: err}
	}
	flag := invalid.GetFlag()
	var twice *twiceError
	if errors.As(err, &twice) {
		return usagef("--%s %v", flag.Name, twice)
	}
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
