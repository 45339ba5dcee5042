// What pages and programs do with @langchain/langgraph-sdk, in both versions that npm's users have: scenarios.mjs URL CONTROL [--only PART].
import assert from "node:assert/strict";
import { Client as One } from "langgraph-sdk-1";
import { Client as Two } from "langgraph-sdk-2";

const [base, control, , only = ""] = process.argv.slice(2);
const scenarios = [];
const scenario = (name, run) => scenarios.push([name, run]);
const kill = async (name) => assert.equal((await fetch(`${control}/kill/${name}`, { method: "POST" })).status, 200);

const refunded = ["paid 250.00", "approved", "refunded rf-o-2", "customer told"];
for (const [version, Client] of [["1.15.0", One], ["2.0.0", Two]]) {
  const c = new Client({ apiUrl: base, apiKey: null });

  scenario(`sdk ${version}: ask, answer, read back`, async () => {
    const { thread_id: t } = await c.threads.create({ metadata: { of: "interop" } });
    const asked = await c.runs.wait(t, "refund", { input: { order_id: "o-2" } });
    assert.deepEqual(asked.__interrupt__.map((q) => q.value), ["Refund 250.00 to order o-2?"]);
    assert.deepEqual((await c.threads.getState(t)).next, ["approval"]);
    const done = await c.runs.wait(t, "refund", { command: { resume: true } });
    assert.deepEqual(done.log, refunded);
    assert.deepEqual((await c.threads.getHistory(t, { limit: 20 })).map((h) => h.metadata.step), [4, 3, 2, 1, 0, -1]);
    assert.equal((await c.threads.get(t)).status, "idle");
  });

  scenario(`sdk ${version}: a stream of several modes`, async () => {
    const { thread_id: t } = await c.threads.create();
    const seen = [];
    let run;
    for await (const e of c.runs.stream(t, "refund", { input: { order_id: "o-1" }, streamMode: ["updates", "custom", "values"], streamResumable: true, onRunCreated: (r) => { run = r.run_id; } })) {
      if (e.event === "custom") seen.push(e.data);
      if (e.event === "updates") seen.push(...Object.keys(e.data));
    }
    assert.deepEqual(seen, ["paid 42.00", "read_order", "refunded rf-o-1", "commit_refund", "notify"]);
    assert.equal((await c.runs.get(t, run)).status, "success");
  });

  scenario(`sdk ${version}: tokens of a model`, async () => {
    const { thread_id: t } = await c.threads.create();
    let text = "";
    for await (const e of c.runs.stream(t, "chat", { input: { messages: [{ type: "human", content: "hi there" }] }, streamMode: "messages-tuple", streamResumable: true })) {
      if (e.event === "messages") text += e.data[0].content;
    }
    assert.equal(text, "You said hi there");
  });

  scenario(`sdk ${version}: a stream is joined after worker and server were killed`, async () => {
    const { thread_id: t } = await c.threads.create();
    const { run_id: run } = await c.runs.create(t, "slow", { input: { steps: 6, delay_ms: 300 }, streamMode: "updates", streamResumable: true });
    const log = [];
    let last = "-1", joined = 0;
    // A page that is loaded again joins behind the last event that it has seen.
    for (const next of ["serve", "worker", null]) {
      joined++;
      for await (const e of c.runs.joinStream(t, run, { lastEventId: last })) {
        if (e.id) last = e.id;
        if (e.event === "updates") log.push(...e.data.tick.log);
        if (e.event === "updates" && next) break;
      }
      if (next) await kill(next);
    }
    assert.deepEqual(log, [1, 2, 3, 4, 5, 6].map((n) => `tick ${n}`));
    assert.equal(joined, 3);
  });

  scenario(`sdk ${version}: cancel`, async () => {
    const { thread_id: t } = await c.threads.create();
    const { run_id: run } = await c.runs.create(t, "slow", { input: { steps: 100, delay_ms: 200 } });
    await c.runs.cancel(t, run, true);
    assert.equal((await c.runs.get(t, run)).status, "interrupted");
  });
}

let failed = false;
for (const [name, run] of scenarios.filter(([name]) => name.includes(only))) {
  const began = Date.now();
  let why = "";
  try {
    await run();
  } catch (e) {
    failed = true;
    why = `: ${e?.name}: ${e?.message} ${e?.cause?.message ?? ""}`.replaceAll("\n", " ").slice(0, 600);
  }
  console.log(`${why ? "FAIL" : "ok  "} ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)${why}`);
}
process.exit(failed ? 1 : 0);
