// Package calendar reads when something comes due, as people and programs write it and as Temporal's schedules take it.
package calendar

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// field is what a field of a schedule is made of: numbers, names, *, ranges, steps and lists.
var field = regexp.MustCompile(`^[0-9A-Za-z*,/-]{1,100}$`)

// named are schedules with a name.
var named = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// Expressions are a schedule as the server takes it: one of five fields (minute, hour, day of the month, month, day of the week), with
// the second as a sixth, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually. A day is due when it fits the day of
// the month or that of the week, if both are given: that is how cron reads it, and the server does not.
func Expressions(schedule string) ([]string, error) {
	f := strings.Fields(schedule)
	if len(f) == 1 {
		if fields, ok := named[strings.ToLower(f[0])]; ok {
			f = strings.Fields(fields)
		}
	}
	if len(f) != 5 && len(f) != 6 {
		return nil, fmt.Errorf("%q has %d fields, and minute, hour, day of the month, month and day of the week are five, "+
			"with the second behind them six; %s are whole schedules", Clip(schedule), len(f), strings.Join(slices.Sorted(maps.Keys(named)), ", "))
	}
	for i, one := range f {
		if one == "?" {
			f[i] = "*"
		} else if !field.MatchString(one) {
			return nil, fmt.Errorf("%q is no field of a schedule", Clip(one))
		}
	}
	if f[2] == "*" || f[4] == "*" {
		return []string{inOrder(f)}, nil
	}
	month, week := append([]string(nil), f...), append([]string(nil), f...)
	month[4], week[2] = "*", "*"
	return []string{inOrder(month), inOrder(week)}, nil
}

// inOrder joins fields as the server reads them: it takes a second as the first of seven, of which the last is the year.
func inOrder(f []string) string {
	if len(f) == 6 {
		return strings.Join(append([]string{f[5]}, f[:5]...), " ") + " *"
	}
	return strings.Join(f, " ")
}

// Clip bounds what of a text an error repeats.
func Clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 100)], "") }

// Zone refuses what is not the name of a time zone, as IANA has them; "" is UTC. The zone of this machine is none: another machine has
// another one.
func Zone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return errors.New("there is no time zone " + fmt.Sprintf("%q", Clip(name)))
	}
	return nil
}
