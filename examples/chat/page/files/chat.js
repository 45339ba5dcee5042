// The page: which thread is open, what it says, and what the person can do about it. What a thread knows is the server's; the page keeps
// nothing, so that loading it again, in the middle of a stream too, shows the same.
import { ask, Lost, Refused, Run } from "./protocol.js";
import { form } from "./forms.js";
import { $, editor, el, forget, showAsks, showMessages, showProblem, showStatus, showThreads } from "./view.js";

const graph = "chat";
const none = { id: "", messages: [], run: null, writing: "", sending: false, reading: false, cards: [] };
let open = { ...none }; // the thread that is shown

// draw shows the conversation and what is asked, all of it at once and at most once for each picture of the screen: a button that is
// there stays where it is, so that nobody hits another one.
let due = false;
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    const busy = Boolean(open.run) || open.sending || open.reading;
    showMessages(open.messages, { writing: open.writing, begin: busy ? null : say, edit: busy ? null : change });
    showAsks(open.cards);
    $("log").ariaBusy = String(busy);
    $("stop").hidden = !open.run;
    $("send").hidden = Boolean(open.run);
    $("send").disabled = busy || open.cards.length > 0;
    $("words").disabled = open.cards.length > 0;
  });
}

// showRest shows the status of a thread that is not at work.
const showRest = () => showStatus(open.cards.length > 0 ? "The agent waits for your answer." : "");

// guarded does something, and says what went wrong.
async function guarded(act, remedy) {
  const at = open;
  try {
    showProblem("");
    return await act();
  } catch (error) {
    if (at !== open || error.name === "AbortError") return undefined;
    if (!at.run) showRest();
    const text = error instanceof Refused || error instanceof Lost ? error.message : "The page has made a mistake: " + error.message;
    showProblem(text, remedy ?? { name: "Load again", act: () => show(at.id) });
    return undefined;
  }
}

const modes = ["messages", "values"];

// body is what every request for a run has. The stream can be read again from any event, and leaving the page stops nothing.
const body = (what) => ({ assistant_id: graph, stream_mode: modes, stream_resumable: true, on_disconnect: "continue", multitask_strategy: "reject", ...what });

// start asks for a run and shows what it says to its end.
async function start(what) {
  const thread = open;
  const run = new Run(thread.id);
  thread.sending = true;
  draw();
  try {
    const response = await run.begin(body(what));
    asking([]);
    await watch(thread, run, { response });
  } finally {
    thread.sending = false;
    draw();
  }
}

// watch shows what a run streams, and then how the thread stands.
async function watch(thread, run, options) {
  if (thread !== open) return;
  thread.run = run;
  thread.sending = thread.reading = false;
  let failed = null;
  showStatus("The agent is at work.");
  draw();
  try {
    await run.follow((event) => {
      if (thread !== open) return;
      failed = take(thread, event) ?? failed;
      draw();
    }, (away) => thread === open && showStatus(away ? "The connection is lost. Trying again …" : "The agent is at work."), options);
  } finally {
    if (thread.run === run) thread.run = null;
    thread.writing = "";
  }
  if (thread !== open) return;
  await settle(thread);
  if (failed) showProblem(`The agent could not go on: ${failed}`, { name: "Try again", act: () => guarded(() => start({ input: null })) });
}

// take takes in an event; it returns what failed.
function take(thread, { event, data }) {
  if (event === "values") {
    thread.messages = data.messages ?? [];
    thread.writing = "";
  } else if (event === "messages/partial" || event === "messages/complete") {
    for (const m of data) {
      const at = thread.messages.findIndex((known) => known.id === m.id);
      if (at < 0) thread.messages.push(m);
      else thread.messages[at] = m;
      thread.writing = event === "messages/partial" ? m.id : "";
    }
  } else if (event === "error") {
    return data.message || data.error;
  }
  return null;
}

// settle shows how the thread stands while no run is under way: its messages, and what it asks.
async function settle(thread) {
  thread.reading = true;
  try {
    await read(thread);
  } finally {
    thread.reading = false;
    draw();
  }
  if (thread === open) await list();
}

// read reads until the thread is at rest. Whether it is comes first, so that the state is not one from before its last step.
async function read(thread) {
  const standing = await ask("GET", `/chat/threads/${thread.id}`);
  const state = await ask("GET", `/threads/${thread.id}/state`);
  if (thread !== open || thread.run) return;
  thread.messages = state.values?.messages ?? [];
  thread.checkpoint = state.checkpoint?.checkpoint_id ?? "";
  draw();
  if (standing.running) { // somebody has approved, here or elsewhere: the thread goes on without a run that could be followed
    showStatus("The agent is at work.");
    await new Promise((done) => setTimeout(done, 500));
    if (thread === open) await read(thread);
    return;
  }
  const own = (id) => id.slice(-8); // the protocol shows a question's id with zeros before it
  const approvals = new Map(standing.approvals.map((a) => [own(a.id), a]));
  const asks = state.interrupts ?? [];
  asking(asks.map((q) => (approvals.has(own(q.id)) ? approvalCard(approvals.get(own(q.id))) : questionCard(q, asks.length))));
  showRest();
}

// asking has what is asked shown.
function asking(cards) {
  open.cards = cards;
  draw();
}

const question = (value) => (typeof value === "string" ? value : value?.question ?? value?.text ?? value?.message ?? value?.ask ?? JSON.stringify(value));

function questionCard(q, of) {
  return el("section", { className: "ask", ariaLabel: "Question" }, el("h2", {}, question(q.value)),
    form(q.response_schema, { send: (answer) => start({ command: { resume: of > 1 ? { [q.id]: answer } : answer } }) }));
}

// approvalCard shows exactly what would be done. What is approved is that: the answer names it by its hashes.
function approvalCard({ id, schema, action, approver }) {
  const facts = Object.entries(action.params ?? {}).map(([name, v]) => [name, typeof v === "string" ? v : JSON.stringify(v)]);
  if (action.risk) facts.push(["risk", action.risk]);
  if (action.need > 1) facts.push(["approvals", `${action.votes?.length ?? 0} of ${action.need}`]);
  if (action.due) facts.push(["until", new Date(action.due).toLocaleString([], { dateStyle: "short", timeStyle: "short" })]);
  facts.push(["you are", approver || "nobody who can approve here"]);
  const request = crypto.randomUUID(); // an answer whose reply is lost counts once when it is given again
  const thread = open;
  const send = async (reply) => {
    if (reply.verdict !== "edit") delete reply.params;
    await ask("POST", `/chat/threads/${thread.id}/approvals`, { id: request + reply.verdict, question: id, digest: action.digest, params_hash: action.params_hash, reply });
    if (thread !== open) return;
    asking([]);
    await guarded(() => settle(thread));
  };
  return el("section", { className: "ask", ariaLabel: "Approval" }, el("h2", {}, `Approval: ${action.summary}`),
    el("dl", {}, ...facts.flatMap(([name, v]) => [el("dt", {}, name), el("dd", {}, v)])),
    form(schema, { send, first: { params: action.params }, off: !approver }));
}

// say sends a message of the person's.
async function say(text) {
  if (open.run || open.sending || open.reading) return;
  const thread = open;
  await guarded(async () => {
    thread.sending = true;
    draw();
    try {
      if (!thread.id) {
        const made = await ask("POST", "/threads", { metadata: { graph_id: graph, title: text.slice(0, 60) } });
        thread.id = made.thread_id;
        history.replaceState(null, "", `#${thread.id}`);
      }
    } finally {
      thread.sending = false;
    }
    const message = { type: "human", id: crypto.randomUUID(), content: text };
    thread.messages = [...thread.messages, message];
    if ($("words").value.trim() === text) $("words").value = "";
    try {
      await start({ input: { messages: [message] } });
    } catch (error) {
      if (thread.messages.at(-1) === message) { // it was not sent
        thread.messages = thread.messages.filter((m) => m !== message);
        if (thread === open && !$("words").value) $("words").value = text;
      }
      throw error;
    }
  });
}

// change lets the person write a message anew: the conversation goes on from the checkpoint before it, as a branch.
function change(message, row) {
  editor(message, row, {
    leave: () => {
      forget();
      draw();
    },
    send: (text) => guarded(async () => {
      const before = await checkpointBefore(open, message.id);
      const anew = { type: "human", id: crypto.randomUUID(), content: text };
      open.messages = [...open.messages.slice(0, open.messages.findIndex((m) => m.id === message.id)), anew];
      forget();
      await start({ input: { messages: [anew] }, checkpoint: { checkpoint_id: before } });
    }),
  });
}

// checkpointBefore is the newest checkpoint of this branch that does not have a message yet.
async function checkpointBefore(thread, message) {
  const known = new Map();
  let oldest = null;
  let at = thread.checkpoint;
  for (;;) {
    while (!known.has(at)) {
      const more = await ask("POST", `/threads/${thread.id}/history`, { limit: 100, ...(oldest && { before: { checkpoint_id: oldest } }) });
      if (more.length === 0) throw new Refused(404, "The server does not know any more how the conversation stood before that message.");
      for (const c of more) known.set(c.checkpoint.checkpoint_id, c);
      oldest = more.at(-1).checkpoint.checkpoint_id;
    }
    const state = known.get(at);
    if (!(state.values?.messages ?? []).some((m) => m.id === message)) return at;
    if (!state.parent_checkpoint) throw new Refused(404, "Nothing came before that message.");
    at = state.parent_checkpoint.checkpoint_id;
  }
}

// stop ends what the agent is at. A thread that goes on after an approval has no run that could be cancelled.
async function stop() {
  const { id, run } = open;
  if (!run) return;
  $("stop").disabled = true;
  await guarded(async () => {
    try {
      await ask("POST", `${run.path}/cancel?wait=0`);
    } catch (error) {
      if (error.status !== 404) throw error;
      await ask("POST", `/chat/threads/${id}/stop`);
    }
  });
  $("stop").disabled = false;
}

// show opens the thread of an address, or the beginning of a new one.
async function show(id) {
  if (!/^[0-9a-zA-Z-]{0,64}$/.test(id)) id = "";
  open.run?.leave();
  const thread = (open = { ...none, id, messages: [], reading: Boolean(id) });
  forget();
  asking([]);
  showStatus(id ? "The conversation is being loaded." : "");
  draw();
  await guarded(async () => {
    try {
      await list();
      if (!id || thread !== open) return;
      const [run] = await ask("GET", `/threads/${id}/runs?limit=1`);
      if (!run) showRest();
      else if (run.status === "pending" || run.status === "running") await watch(thread, new Run(id, run.run_id));
      else await settle(thread);
    } finally {
      thread.reading = false;
      draw();
    }
  });
}

// list shows the conversations. Of one that waits the list knows only how its last run ended, so it is looked at.
async function list() {
  const found = await ask("POST", "/threads/search", { metadata: { graph_id: graph }, limit: 30 });
  await Promise.all(found.filter((t) => t.status === "interrupted").map(async (t) => {
    t.status = await ask("GET", `/threads/${t.thread_id}`).then((now) => now.status, () => t.status);
  }));
  showThreads(found, open.id);
}

$("composer").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("words").value.trim();
  if (text) say(text);
});
$("words").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    $("composer").requestSubmit();
  }
});
$("stop").addEventListener("click", stop);
$("new").addEventListener("click", () => {
  history.pushState(null, "", location.pathname);
  show("");
  $("words").focus();
});
window.addEventListener("hashchange", () => show(location.hash.slice(1)));
show(location.hash.slice(1));
