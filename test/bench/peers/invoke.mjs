// Invokes LangGraph.js's graphs in this very process, as invoke.py does, with the same requests and replies.
//
//     node invoke.mjs READYFILE SQLITEFILE [POSTGRESDSN]
//
// Beside it must lie a node_modules with @langchain/langgraph and its savers.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

import { Annotation, Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";

const CALL_TEXTS = 800;

const list = () => Annotation({ reducer: (a, b) => a.concat(b), default: () => [] });
const State = Annotation.Root({ steps: Annotation, step: Annotation, note: Annotation, texts: list(), done: list() });

/** All graphs of graphs.go over a saver. */
function graphs(checkpointer) {
  const graph = (nodes) => Object.entries(nodes).reduce((g, [name, f]) => g.addNode(name, f), new StateGraph(State));
  const loop = (f) =>
    graph({ again: f })
      .addEdge(START, "again")
      .addConditionalEdges("again", (s) => (s.step < s.steps ? "again" : END), ["again", END]);
  const all = {
    chain: loop((s) => ({ step: (s.step ?? 0) + 1 })),
    calls: loop((s) => ({ step: (s.step ?? 0) + 1, texts: s.texts.length >= CALL_TEXTS ? ["noted"] : [] })),
    fan: graph({ leaf: (s) => ({ done: [s.steps] }), join: (s) => ({ step: s.done.length }) })
      .addConditionalEdges(START, (s) => Array.from({ length: s.steps }, (_, i) => new Send("leaf", { steps: i })), ["leaf"])
      .addEdge("leaf", "join"),
    ask: graph({
      ask: () => {
        interrupt("go on?");
        return { step: 1 };
      },
      answered: (s) => ({ step: s.step + 1 }),
    })
      .addEdge(START, "ask")
      .addEdge("ask", "answered"),
    talk: graph({ hear: (s) => ({ step: s.texts.length }) }).addEdge(START, "hear"),
  };
  return Object.fromEntries(Object.entries(all).map(([name, g]) => [name, g.compile({ checkpointer })]));
}

async function once(app, r, thread) {
  const how = { configurable: { thread_id: thread }, recursionLimit: (r.input.steps ?? 0) + 10, durability: r.mode };
  const out = await app.invoke(r.input, how);
  if (!r.asks) return out.step;
  if (!out.__interrupt__) throw new Error("it did not ask");
  return (await app.invoke(new Command({ resume: true }), how)).step;
}

async function work(app, r) {
  const threads = r.at_once ? Array.from({ length: r.at_once }, (_, i) => `${r.thread}-${i}`) : [r.thread];
  const began = performance.now();
  const steps = await Promise.all(threads.map((thread) => once(app, r, thread)));
  const ms = performance.now() - began;
  if (new Set(steps).size !== 1) throw new Error(`they came to ${steps}`);
  return { ms, step: steps[0] };
}

async function savers(sqliteFile, dsn) {
  const out = {};
  try {
    const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
    out.sqlite = graphs(SqliteSaver.fromConnString(sqliteFile));
  } catch (e) {
    out.sqlite = e; // its database is native code, which may not be built here
  }
  if (dsn) {
    const { default: pg } = await import("pg");
    const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
    const first = new pg.Client(new URL("postgres", dsn).href);
    await first.connect();
    await first.query(`CREATE DATABASE ${new URL(dsn).pathname.slice(1)}`);
    await first.end();
    const saver = PostgresSaver.fromConnString(dsn);
    await saver.setup();
    out.postgres = graphs(saver);
  }
  return out;
}

function versions() {
  const out = { "Node.js": process.version };
  for (const name of ["@langchain/langgraph", "@langchain/langgraph-checkpoint-postgres", "@langchain/langgraph-checkpoint-sqlite", "pg"]) {
    try {
      out[name] = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
    } catch {} // it is not installed
  }
  return out;
}

const [ready, sqliteFile, dsn] = process.argv.slice(2);
const bySaver = await savers(sqliteFile, dsn);
const server = createServer(async (request, response) => {
  const reply = (status, body) => response.writeHead(status).end(JSON.stringify(body));
  try {
    if (request.method === "GET") return reply(200, versions());
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const r = JSON.parse(Buffer.concat(chunks).toString());
    const all = bySaver[r.saver];
    if (all instanceof Error) throw all;
    reply(200, await work(all[r.graph], r));
  } catch (e) {
    reply(500, String(e).slice(0, 1000));
  }
});
server.listen(0, "127.0.0.1", () => {
  writeFileSync(`${ready}.new`, `http://127.0.0.1:${server.address().port}`);
  renameSync(`${ready}.new`, ready);
});
