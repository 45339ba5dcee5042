package cli

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"superstep.dev/job"
)

// limit is one line of a budget.
type limit struct {
	what, spent, most string
	bounded           bool
}

// limitsOf is what a job has spent of what it may spend.
func limitsOf(v job.View) []limit {
	var begun, attempts int64
	for _, s := range v.SubJobs {
		attempts += int64(s.Attempts)
		if s.Attempts > 0 {
			begun++
		}
	}
	count := func(what string, spent, most int64) limit {
		return limit{what: what, spent: humanize.Comma(spent), most: mostOf(most, humanize.Comma(most)), bounded: most > 0}
	}
	return []limit{
		count("tokens", v.Spent.Tokens, v.Budget.Tokens),
		{"usd", dollars(v.Spent.MicroUSD), mostOf(v.Budget.MicroUSD, dollars(v.Budget.MicroUSD)), v.Budget.MicroUSD > 0},
		count("writes", v.Spent.Writes, v.Budget.Writes),
		{"time", shortDuration(v.Duration), mostOf(v.Budget.Seconds, shortDuration(time.Duration(v.Budget.Seconds)*time.Second)), v.Budget.Seconds > 0},
		count("subjobs", begun, v.Budget.SubJobs),
		count("attempts", attempts, v.Budget.Attempts),
	}
}

func mostOf(most int64, text string) string {
	if most == 0 {
		return "no limit"
	}
	return text
}

// dollars shows millionths of a dollar, to the cent when that is exact.
func dollars(micro int64) string {
	if micro%10_000 == 0 {
		return fmt.Sprintf("%d.%02d", micro/1_000_000, micro%1_000_000/10_000)
	}
	return fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
}

// spentShort is what a job has spent in one line: what is limited, and tokens and money when there are any.
func spentShort(v job.View) string {
	text := ""
	for _, l := range limitsOf(v) {
		switch {
		case l.bounded:
			text += fmt.Sprintf("  %s %s/%s", l.what, l.spent, l.most)
		case l.what == "tokens" && v.Spent.Tokens > 0, l.what == "usd" && v.Spent.MicroUSD > 0:
			text += fmt.Sprintf("  %s %s", l.what, l.spent)
		}
	}
	return text
}
