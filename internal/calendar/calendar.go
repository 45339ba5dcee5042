// Package calendar reads when something comes due, as people and programs write it and as Temporal's schedules take it.
package calendar

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// field is what a field of a schedule is made of: numbers, names, *, ranges, steps and lists.
var field = regexp.MustCompile(`^[0-9A-Za-z*,/-]{1,100}$`)

// Expressions are a schedule of five fields (minute, hour, day of the month, month, day of the week) as the server takes it. A day is due
// when it fits the day of the month or that of the week, if both are given: that is how cron reads it, and the server does not.
func Expressions(schedule string) ([]string, error) {
	f := strings.Fields(schedule)
	if len(f) != 5 {
		return nil, fmt.Errorf("%q has %d fields, and minute, hour, day of the month, month and day of the week are five", Clip(schedule), len(f))
	}
	for i, one := range f {
		if one == "?" {
			f[i] = "*"
		} else if !field.MatchString(one) {
			return nil, fmt.Errorf("%q is no field of a schedule", Clip(one))
		}
	}
	if f[2] == "*" || f[4] == "*" {
		return []string{strings.Join(f, " ")}, nil
	}
	month, week := append([]string(nil), f...), append([]string(nil), f...)
	month[4], week[2] = "*", "*"
	return []string{strings.Join(month, " "), strings.Join(week, " ")}, nil
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
