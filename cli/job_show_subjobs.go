package cli

import (
	"fmt"
	"slices"

	"superstep.dev/job"
)

// split parts the subjobs that count from those that others have replaced.
func split(all []job.SubJob) (current, replaced []job.SubJob) {
	for _, s := range all {
		if s.Legacy {
			replaced = append(replaced, s)
		} else {
			current = append(current, s)
		}
	}
	return current, replaced
}

func (a *app) showSubJobs(v job.View, current, replaced []job.SubJob) error {
	shown := current
	if len(current) > mostShown {
		shown = slices.DeleteFunc(slices.Clone(current), func(s job.SubJob) bool {
			return s.Attempts < 2 && len(s.Lessons) == 0 && (s.Status == job.StatusFinished || s.Status == job.StatusCreated)
		})
	}
	if cut := min(len(shown), mostShown); cut < len(shown) {
		shown = shown[:cut]
	}
	t := a.statusTable("SUBJOB", "EXPERT", "STATUS", "ATTEMPTS", "TOOK", "NOTE")
	for _, s := range append(slices.Clone(shown), replaced[:min(len(replaced), mostShown)]...) {
		t.row(s.ID, s.Expert, statusOfSubJob(s), fmt.Sprint(s.Attempts), a.took(s), noteOf(s, v.SubJobs))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if more := len(current) + len(replaced) - len(t.rows) + 1; more > 0 {
		a.printf("%d more: %s\n", more, a.commandLine("job", "show", v.ID, "-o", "json"))
	}
	return nil
}

// took is how long the work on a subjob took from its first attempt on, or has taken until now.
func (a *app) took(s job.SubJob) string {
	switch {
	case s.Started.IsZero():
		return ""
	case s.Open || s.Ended.IsZero():
		return shortDuration(a.now().Sub(s.Started))
	}
	return shortDuration(s.Ended.Sub(s.Started))
}

func statusOfSubJob(s job.SubJob) string {
	switch {
	case s.Legacy:
		return "REPLACED"
	case s.Stale:
		return string(s.Status) + " (stale)"
	}
	return string(s.Status)
}

// noteOf is what a person should know of a subjob at first sight.
func noteOf(s job.SubJob, all []job.SubJob) string {
	if s.Legacy {
		var by []string
		for _, other := range all {
			if other.Parent == s.ID {
				by = append(by, other.ID)
			}
		}
		return "by " + list(by)
	}
	if n := len(s.Lessons); n > 0 && s.Status != job.StatusFinished {
		return shorten("lesson: "+clean(s.Lessons[n-1]), cellWidth)
	}
	if s.Reason != "" {
		return shorten(clean(s.Reason), cellWidth)
	}
	return shorten(clean(s.Goal), cellWidth-40)
}
