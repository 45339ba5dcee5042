package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

const (
	dashboard  = "../../deploy/grafana/superstep.json"
	alertRules = "../../deploy/prometheus/superstep.rules.yml"
)

// TestFiguresAsPrometheusHasThem: workers are killed in the middle of a write, those that go on count that, and a real
// Prometheus that scrapes all of them has an answer to each expression of the dashboard and of the alert rules.
func TestFiguresAsPrometheusHasThem(t *testing.T) {
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s in PATH: install Prometheus (Debian: apt-get install prometheus) to run this test", program)
		}
	}
	rules, err := filepath.Abs(alertRules)
	require.NoError(t, err)
	out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput()
	require.NoError(t, err, "%s", out)

	t.Parallel()
	r := newRigAt(t, testserver.Start(t, testserver.Options{}).Address()) // nobody else asks people there
	var targets []string
	scraped := func(name string) *processes.Process {
		at := targets[0]
		targets = append(targets[1:], at)
		r.flags = []string{"--metrics-addr", at}
		return r.graphsWorker(name)
	}
	for range 4 {
		targets = append(targets, testserver.FreeAddress())
	}
	scrapes := slices.Clone(targets)
	p := r.prometheus(rules, scrapes)
	r.putText("effect", "keyed")

	r.put("hang")
	r.putText("says", "committed")
	first := scraped("worker-1")
	looked := testserver.Queue(t)
	r.again("reconciles", looked, r.steered())
	r.until("the first call is under way", func() bool { return r.ran("did") == 1 })
	p.until(`sum(superstep_runs_begun_total)`, 1)
	r.until("that was scraped twice", func() bool { return len(p.ask(`count_over_time(superstep_runs_begun_total[1h]) > 1`)) > 0 })
	r.kill(first)
	r.remove("hang")
	second := scraped("worker-2")
	r.wait(looked, thread.StatusFinished)
	p.until(all("superstep_recoveries_begun_total"), 1)
	p.until(all(`superstep_recoveries_total{outcome="went_on"}`), 1)
	p.until(all(`superstep_effects_reconciled_total{how="looked_up"}`), 1)
	p.until(all(`superstep_runs_ended_total{status="finished"}`), 1)

	r.put("hang")
	r.putText("says", "unknown")
	unclear := testserver.Queue(t)
	r.again("reconciles", unclear, r.steered())
	r.until("the second call is under way", func() bool { return r.ran("did") == 2 })
	p.until(all("superstep_runs_begun_total"), 2) // a worker that is killed takes along what nobody has scraped
	r.kill(second)
	r.remove("hang")
	third := scraped("worker-3")
	q := r.asked(unclear)
	open := func(worker int) string {
		return fmt.Sprintf(`superstep_questions_open{graph="reconciles",about="doubt",instance=%q}`, scrapes[worker])
	}
	p.until(open(2), 1)
	for _, counted := range []string{"superstep_effects_unknown_total", `superstep_questions_asked_total{about="doubt"}`, "superstep_recovery_seconds_count"} {
		r.until(counted+" is scraped", func() bool {
			return len(p.ask(counted+fmt.Sprintf(" and on(instance) up{instance=%q}", scrapes[2]))) > 0
		})
	}
	r.kill(third)
	scraped("worker-4") // has counted none of it, and tells what waits all the same
	p.until(open(3), 1)
	asked := func() float64 {
		at := p.ask(fmt.Sprintf(`timestamp(superstep_oldest_question_age_seconds{instance=%q}) - superstep_oldest_question_age_seconds`, scrapes[3]))
		require.Len(t, at, 1)
		return at[0]
	}
	require.InDelta(t, asked(), r.askedAt(unclear, q.ID), 2, "when the oldest was asked, in seconds since 1970")
	_, err = r.answer(unclear, q.ID, map[string]string{"action": "repeat"})
	require.NoError(t, err)
	r.wait(unclear, thread.StatusFinished)
	p.until(open(3), 0)
	p.until(all("superstep_recoveries_begun_total"), 2)
	p.until(all("superstep_recovery_seconds_count"), 2)
	p.until(all("superstep_effects_unknown_total"), 1)
	p.until(all(`superstep_takeovers_total{about="effect"}`), 1)
	p.until(all(`superstep_questions_asked_total{about="doubt"}`), 1)
	p.until(all(`superstep_tasks_total{outcome="failed"}`), 0)
	p.until(`count({__name__=~"superstep_.*", graph!="reconciles"}) or vector(0)`, 0)

	for _, e := range dashboardExpressions(t) {
		p.ask(e)
		if !happensElsewhere(e) { // an increase has data from a second scrape on
			r.until("there is data: "+e, func() bool { return len(p.ask(e)) > 0 })
		}
	}
	p.rulesWork()
}

// all is a figure of all workers, of those that were killed too.
func all(figure string) string { return "sum(max_over_time(" + figure + "[1h])) or vector(0)" }

// happensElsewhere reports whether an expression is about what does not happen in this test: it is to be understood, without data.
func happensElsewhere(expression string) bool {
	return slices.ContainsFunc([]string{"superstep_approvals_", "superstep_effects_compensated_", "superstep_segments_",
		"superstep_limits_near_", "superstep_runs_continued_"}, func(name string) bool { return strings.Contains(expression, name) })
}

// dashboardExpressions are those of the dashboard, with values for its variables.
func dashboardExpressions(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	known := strings.NewReplacer("$graph", ".*", "$__range", "10m", "$__rate_interval", "10m")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			out = append(out, known.Replace(target.Expr))
		}
	}
	require.Greater(t, len(out), 20)
	return out
}

// askedAt is when a question was asked, in seconds since 1970, as lists have it.
func (r *rig) askedAt(threadID, question string) float64 {
	r.t.Helper()
	open, err := r.client.OpenQuestions(r.t.Context(), "reconciles")
	require.NoError(r.t, err)
	require.Len(r.t, open, 1)
	require.Equal(r.t, thread.OpenQuestions{Graph: "reconciles", About: thread.AboutDoubt, Open: 1, Oldest: open[0].Oldest}, open[0])
	v, err := r.client.Show(r.t.Context(), threadID)
	require.NoError(r.t, err)
	require.Equal(r.t, question, v.Questions[0].ID)
	require.True(r.t, open[0].Oldest.After(v.Started.Add(-time.Second)), "%v, the run began %v", open[0].Oldest, v.Started)
	return float64(open[0].Oldest.Unix())
}

// prometheus is a real one.
type prometheus struct {
	*rig
	url string
}

// prometheus starts one that scrapes these targets and evaluates those rules.
func (r *rig) prometheus(rules string, targets []string) *prometheus {
	r.t.Helper()
	at := testserver.FreeAddress()
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs:\n- job_name: superstep\n  static_configs:\n  - targets: [%s]\n", rules, strings.Join(targets, ", "))
	r.putText("prometheus.yml", config)
	_, err := r.set.Start(r.t.Context(), processes.Command{Name: "prometheus", Path: "prometheus", Args: []string{
		"--config.file=" + filepath.Join(r.dir, "prometheus.yml"), "--storage.tsdb.path=" + filepath.Join(r.dir, "tsdb"), "--web.listen-address=" + at}})
	require.NoError(r.t, err)
	r.names = append(r.names, "prometheus")
	p := &prometheus{r, "http://" + at}
	r.until("Prometheus is ready", func() bool {
		resp, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

// get asks Prometheus's API.
func (p *prometheus) get(path string, data any) {
	p.t.Helper()
	resp, err := http.Get(p.url + path)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	reply := struct {
		Status, Error string
		Data          any
	}{Data: data}
	require.NoError(p.t, json.NewDecoder(resp.Body).Decode(&reply))
	require.Equal(p.t, "success", reply.Status, "%s: %s", path, reply.Error)
}

// ask evaluates an expression, and returns the values of the series that it has.
func (p *prometheus) ask(expression string) (values []float64) {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get("/api/v1/query?query="+url.QueryEscape(expression), &data)
	for _, series := range data.Result {
		value, err := strconv.ParseFloat(series.Value[1].(string), 64)
		require.NoError(p.t, err)
		values = append(values, value)
	}
	return values
}

// until waits until an expression has that one value.
func (p *prometheus) until(expression string, want float64) {
	p.t.Helper()
	var last []float64
	p.rig.until(fmt.Sprintf("%s is %v", expression, want), func() bool {
		last = p.ask(expression)
		return len(last) == 1 && last[0] == want
	})
}

// rulesWork waits until all rules were evaluated, and wants none that could not be.
func (p *prometheus) rulesWork() {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.rig.until("all rules were evaluated", func() bool {
		p.get("/api/v1/rules", &data)
		require.Len(p.t, data.Groups, 1)
		require.GreaterOrEqual(p.t, len(data.Groups[0].Rules), 10)
		for _, rule := range data.Groups[0].Rules {
			require.Empty(p.t, rule.LastError, rule.Name)
			if rule.Health != "ok" {
				return false
			}
		}
		return true
	})
}
