package approval

import "slices"

// Above reports whether r is a higher risk than other. "" is below all, for questions that are no approvals; a word that
// is not known is above all.
func (r Risk) Above(other Risk) bool { return r.level() > other.level() }

func (r Risk) level() int {
	all := []Risk{"", RiskLow, RiskMedium, RiskHigh, RiskCritical}
	if at := slices.Index(all, r); at >= 0 {
		return at
	}
	return len(all)
}
