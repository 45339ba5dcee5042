package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

// The promise of the project: the worker dies with the refund committed and unanswered, another one takes over, asks
// by the key, and does not send it again. It holds however seldom progress is stored.
func TestWorkerKilledInsideAnActivity(t *testing.T) {
	for _, durability := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		t.Run(string(durability), func(t *testing.T) { killedInsideAnActivity(newRig(t), durability) })
	}
}

func killedInsideAnActivity(r *rig, durability superstep.Durability) {
	t := r.t
	r.payments()
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	first := r.refundWorker("worker-1")
	threadID := testserver.Queue(t)
	_, err := r.client.Start(t.Context(), thread.StartRequest{Graph: "refund", Thread: threadID, Durability: durability,
		Input: encode(t, map[string]string{"order_id": "o-11"})})
	require.NoError(t, err)
	r.until("the money moved", func() bool { return r.traffic().Refunds.Committed == 1 })
	r.refundWorker("worker-2")
	r.kill(first)
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, payments.KeyTraffic{Requests: 1, Lookups: 1, Committed: 1}, r.refundedOnce("o-11", 4_200))
	require.Equal(t, int64(1), r.traffic().Notifications.Committed)
	require.Equal(t, []string{"paid 42.00", "refunded rf-1", "customer told"}, value[[]string](r, threadID, "log"))
}

// A run whose worker dies inside a node does not wait for that worker once more when the node is through: its next workflow
// task is offered to any worker, and none times out in the dead one's sticky queue.
func TestARunDoesNotWaitForItsLostWorker(t *testing.T) {
	for name, mode := range map[string]thread.StartRequest{
		"task": {}, "fused": {Fused: true}, "async": {Durability: superstep.DurabilityAsync}, "exit": {Durability: superstep.DurabilityExit},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first := r.graphsWorker("worker-1")
			mode.Graph, mode.Thread, mode.Input = "slow", testserver.Queue(t), encode(t, r.steered())
			_, err := r.client.Start(t.Context(), mode)
			require.NoError(t, err)
			r.until("an activity runs the node", func() bool {
				described, err := r.temporal.DescribeWorkflowExecution(t.Context(), mode.Thread, "")
				if err != nil || len(described.GetPendingActivities()) != 1 {
					return false
				}
				return described.GetPendingActivities()[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED && r.ran("slow") > 0
			})
			before := r.ran("slow")
			r.graphsWorker("worker-2")
			r.kill(first)
			r.until("the node runs again", func() bool { return r.ran("slow") > before })
			r.put("go")
			// By the last event alone: a wait of ours would give the run a workflow task of its own.
			require.NoError(t, r.temporal.GetWorkflow(t.Context(), mode.Thread, "").Get(t.Context(), nil))

			takenOver, offered := false, []enumspb.TaskQueueKind(nil)
			events := r.temporal.GetWorkflowHistory(t.Context(), mode.Thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for events.HasNext() {
				event, err := events.Next()
				require.NoError(t, err)
				if event.GetActivityTaskStartedEventAttributes().GetAttempt() > 1 {
					takenOver = true
				}
				if scheduled := event.GetWorkflowTaskScheduledEventAttributes(); scheduled != nil && takenOver {
					offered = append(offered, scheduled.GetTaskQueue().GetKind())
				}
				if late := event.GetWorkflowTaskTimedOutEventAttributes(); late != nil && takenOver {
					require.NotEqual(t, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, late.GetTimeoutType(), "%v", event)
				}
			}
			require.NotEmpty(t, offered)
			require.Equal(t, enumspb.TASK_QUEUE_KIND_NORMAL, offered[0])
		})
	}
}

// No money moves twice when it is the payments service that dies, and comes back on its file.
func TestPaymentsKilledAfterTheCommit(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	threadID := r.begin("refund", map[string]string{"order_id": "o-11"})
	r.until("the money moved", func() bool { return r.traffic().Refunds.Committed == 1 })
	r.restartPayments()
	r.wait(threadID, thread.StatusFinished)
	traffic := r.refundedOnce("o-11", 4_200)
	require.Equal(t, int64(1), traffic.Requests)
	require.GreaterOrEqual(t, traffic.Lookups, int64(1))
}

// A worker that dies in the middle of a workflow task, between two supersteps whose results are stored, leaves nothing undone and nothing
// done twice: another one decides the same.
func TestWorkerKilledInsideAWorkflowTask(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} { // before the run, which kills two of them, each as soon as it has it
		r.graphsWorker(name)
	}
	r.put("kill-second")
	r.put("kill-third")
	threadID := testserver.Queue(t)
	r.again("applies", threadID, r.steered())
	r.wait(threadID, thread.StatusFinished)
	for _, node := range []string{"first", "second", "beside second", "third", "beside third"} {
		require.Equal(t, 1, r.ran(node), node)
	}
	require.NoFileExists(t, filepath.Join(r.dir, "kill-second"))
	require.NoFileExists(t, filepath.Join(r.dir, "kill-third"))
	require.Equal(t, filepath.Join(r.dir, "third"), value[string](r, threadID, "best"))
}

// A worker is killed as soon as the history shows that a node has finished: while its superstep is applied and the next
// one begins.
func TestWorkerKilledAtEveryBoundary(t *testing.T) {
	r := newRig(t)
	r.payments()
	worker := r.refundWorker("worker-0")
	for i, node := range []string{"read_order", "calculate", "commit_refund"} {
		order := r.order(i, 1_000)
		threadID := r.begin("refund", map[string]string{"order_id": order})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		killed := false
		_, err := r.client.Follow(ctx, thread.View{Thread: threadID}, func(p thread.Progress) {
			if p.Node != node || p.State != thread.ProgressOK || killed {
				return
			}
			killed = true
			r.kill(worker)
			worker = r.refundWorker(fmt.Sprintf("worker-%d", i+1))
		})
		cancel()
		require.NoError(t, err)
		require.True(t, killed)
		r.wait(threadID, thread.StatusFinished)
		require.Equal(t, int64(1), r.refundedOnce(order, 1_000).Requests)
		require.Equal(t, []string{"paid 10.00", "refunded " + fmt.Sprintf("rf-%d", i+1), "customer told"}, value[[]string](r, threadID, "log"))
	}
}

// What a node reads does not travel with its task when it is large. The worker that had it in memory is killed: another
// one, which never saw it, finds it by replaying the run, and so on to the end.
func TestWorkerKilledWithWhatNodesRead(t *testing.T) {
	r := newRig(t)
	first := r.graphsWorker("worker-1")
	threadID := r.begin("hoards", map[string]any{"dir": r.dir, "size": 1 << 20})
	r.until("the second node runs", func() bool { return r.ran("two") == 1 })
	r.kill(first)
	second := r.graphsWorker("worker-2")
	r.until("the second node runs again", func() bool { return r.ran("two") == 2 })
	r.kill(second)
	r.graphsWorker("worker-3")
	r.until("the second node runs a third time", func() bool { return r.ran("two") == 3 })
	r.put("go")
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, []string{"one", "two", "three"}, value[[]string](r, threadID, "log"))
	require.Equal(t, 1, r.ran("one"))
	require.Equal(t, 1, r.ran("three"))
	require.Equal(t, hoard(1<<20), value[string](r, threadID, "note"))
}

// Many runs, and workers that are killed at any moment: every run finishes, and every refund is there once.
func TestWorkersKilledAtRandom(t *testing.T) {
	const runs, kills = 24, 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	r.payments()
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{SlowMS: 100}))
	workers := []*processes.Process{r.refundWorker("worker-1"), r.refundWorker("worker-2")}
	threads := make([]string, runs)
	for i := range threads {
		threads[i] = r.begin("refund", map[string]string{"order_id": r.order(i, int64(1_000+i))})
		if i%(runs/kills) != 0 {
			continue
		}
		// Not a wait for anything: the moment of the kill is what is random.
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		victim := random.IntN(len(workers))
		r.kill(workers[victim])
		workers[victim] = r.refundWorker(fmt.Sprintf("worker-%d", 3+i))
	}
	for i, threadID := range threads {
		r.wait(threadID, thread.StatusFinished)
		traffic := r.refundedOnce(fmt.Sprintf("e2e-%d", i), int64(1_000+i))
		require.Equal(t, int64(1), traffic.Committed)
		log := value[[]string](r, threadID, "log")
		require.Len(t, log, 3, "%v", log)
	}
	require.Equal(t, int64(runs), r.traffic().Notifications.Committed)
}

// On SIGTERM a worker takes nothing new, lets what runs finish, and exits 0. The run goes on elsewhere.
func TestWorkerDrains(t *testing.T) {
	r := newRig(t)
	pid := make(chan int, 1)
	code := r.runProgram("drained", pid)
	threadID := r.begin("pair", r.steered())
	r.until("the node runs", func() bool { return r.ran("shaky") == 1 })
	require.NoError(t, syscall.Kill(<-pid, syscall.SIGTERM))
	r.until("the worker drains", func() bool { return !exists(r.work(), "drained.ready") })
	r.graphsWorker("next")
	r.put("go")
	require.Equal(t, 0, <-code)
	require.Contains(t, r.set.Tail("drained", 1), "worker drained")
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, []int{1, 1, 1}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
}

// A node that takes down every worker that runs it is not allowed to go on like that: after ten a person is asked.
func TestTenLostWorkersAsk(t *testing.T) {
	r := newRig(t)
	r.restartWorkers()
	threadID := r.begin("deadly", r.steered())
	q := r.asked(threadID)
	require.Equal(t, "deadly", q.Node)
	require.Contains(t, string(q.Value), "10 workers in a row were lost")
	require.Equal(t, 1+10, r.ran("deadly"), "once within a workflow task, and in ten activities")
	r.put("behave")
	_, err := r.answer(threadID, q.ID, true)
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, 1+11, r.ran("deadly"))
}

// The tasks beside such a node are lost with every worker that it takes down, and look the same from outside. Nobody is asked
// about them, and they finish.
func TestANodeThatKillsItsWorkerIsToldFromThoseBesideIt(t *testing.T) {
	r := newRig(t)
	r.restartWorkers()
	var beside []string
	for range 2 {
		beside = append(beside, r.begin("slow", r.steered()))
	}
	r.until("they run", func() bool { return r.ran("slow") >= len(beside) })
	deadly := r.begin("deadly", r.steered())
	late := time.After(15 * time.Minute)
	for asked := false; !asked; {
		view, err := r.client.Show(t.Context(), deadly)
		asked = err == nil && len(view.Questions) > 0
		select {
		case <-time.After(poll):
		case <-late:
			require.FailNow(t, "nobody is asked about the node that kills its worker")
		}
	}
	require.Equal(t, 1+10, r.ran("deadly"))
	require.Greater(t, r.ran("slow"), 2*len(beside), "they were lost with it")
	for _, threadID := range beside {
		view, err := r.client.Show(t.Context(), threadID)
		require.NoError(t, err)
		require.Equal(t, thread.StatusRunning, view.Status, "%v", view.Questions)
	}
	r.put("go")
	for _, threadID := range beside {
		r.wait(threadID, thread.StatusFinished)
	}
}

// restartWorkers keeps a worker running, as a service manager does.
func (r *rig) restartWorkers() {
	r.t.Helper()
	// Ten are waited for one after the other. One that is lost before it runs the node would count as lost all the same.
	r.lostAfter = lostAfter / 2
	r.restart(func(int) processes.Command { return r.program("restarted") })
	r.until("a worker is there", func() bool {
		_, err := r.client.GraphSpec(r.t.Context(), "deadly")
		return err == nil
	})
}

// The server is killed with runs in every state, and started again on its file: they all go on.
func TestServerKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.Options{})
	r := newRigAt(t, server.Address())
	r.payments()
	r.refundWorker("worker")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{SlowMS: 2_000}))
	waiting := r.begin("refund", map[string]string{"order_id": "o-7"})
	q := r.asked(waiting)
	paying := r.begin("refund", map[string]string{"order_id": "o-11"})
	r.until("the refund is on its way", func() bool { return r.traffic().Refunds.Requests == 1 })

	require.NoError(t, server.Kill())
	r.exits(6, r.superstep("show", waiting))
	require.NoError(t, server.Restart())

	r.wait(paying, thread.StatusFinished)
	r.refundedOnce("o-11", 4_200)
	r.untilAnswered(waiting, q.ID, true)
	r.wait(waiting, thread.StatusFinished)
	require.Equal(t, int64(1), r.refundedOnce("o-7", 25_000).Requests)
}

// restartPayments kills the payments service and starts it again on its file and its address.
func (r *rig) restartPayments() {
	r.t.Helper()
	r.kill(r.service)
	r.startPayments(r.moneyURL[len("http://"):])
}

// runProgram runs a worker of the graphs of these tests to its end, and tells its pid and its exit code.
func (r *rig) runProgram(name string, pid chan<- int) <-chan int {
	r.t.Helper()
	code := make(chan int, 1)
	go func() {
		c, err := r.set.Run(context.WithoutCancel(r.t.Context()), r.telling(r.program(name)))
		if err != nil {
			c = -1
		}
		code <- c
	}()
	r.until("the worker is ready", func() bool { return exists(r.work(), name+".ready") })
	r.awaitPoller()
	pid <- r.readyPID(name)
	return code
}

// untilAnswered answers a question; right after a server's start nobody may be there to take the answer.
func (r *rig) untilAnswered(thread, question string, value any) {
	r.t.Helper()
	var last error
	r.until("the answer is taken", func() bool {
		_, last = r.answer(thread, question, value)
		return last == nil
	})
}

// work is a state that only says where the rig's files are.
func (r *rig) work() (s work) {
	s.Dir.Set(r.dir)
	return s
}

// TestWorkerKilledWithinAnUpdateThatWaits: the caller of a turn hears of its end from the worker that takes over, whether the turn
// began the run or was given to an open one. Each turn is done once; what no mode but sync has stored runs again.
func TestWorkerKilledWithinAnUpdateThatWaits(t *testing.T) {
	for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			r.graphsWorker("worker-1")
			th := applies().Thread(r.client, testserver.Queue(t))
			for turn, killed := range []string{"kill-second", "kill-third"} {
				r.put(killed)
				done := make(chan error, 1)
				go func() {
					result, err := th.Invoke(r.t.Context(), r.steered(), superstep.WithKeepOpen(0), superstep.WithDurability(mode))
					if err == nil && (result.Status != thread.StatusFinished || result.Output.Best.Get() != filepath.Join(r.dir, "third")) {
						err = fmt.Errorf("the turn is %s with %q", result.Status, result.Output.Best.Get())
					}
					done <- err
				}()
				r.until("the worker is dead", func() bool {
					_, err := os.Stat(filepath.Join(r.dir, killed))
					return errors.Is(err, fs.ErrNotExist)
				})
				r.graphsWorker(fmt.Sprintf("worker-%d", turn+2))
				require.NoError(t, <-done)
				for _, node := range []string{"first", "second", "third"} {
					require.GreaterOrEqual(t, r.ran(node), turn+1, node)
					require.True(t, mode != superstep.DurabilitySync || r.ran(node) == turn+1, node)
				}
			}
			history, err := th.History(t.Context(), superstep.FromSource("input"))
			require.NoError(t, err)
			require.True(t, mode == superstep.DurabilityExit || len(history) == 2, "the turns were taken %d times", len(history))
		})
	}
}
