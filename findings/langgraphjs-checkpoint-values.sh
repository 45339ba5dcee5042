#!/usr/bin/env bash
# @langchain/langgraph 1.7.3: which values a later node finds after a run was resumed from its checkpoint.
#
# Guess: a value that JSON cannot carry fails the node that returns it, as JSON.stringify fails with a BigInt.
# Seen: a run with a BigInt in its state ends well, and then neither its state can be read nor the run resumed: the whole
# checkpoint was stored as a text about an error. NaN and Infinity come back as null, a Date as a text, a typed array as
# an object with numbered keys, an error as a plain Error; each without a word. Map and Set come back whole.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes >/dev/null
npm install --silent --no-fund --no-audit --legacy-peer-deps @langchain/langgraph@1.7.3 @langchain/core@1 >/dev/null
cat >main.mjs <<'JS'
import assert from "node:assert/strict";
import { Annotation, MemorySaver, START, StateGraph } from "@langchain/langgraph";

async function resumed(value) {
  let found;
  const graph = new StateGraph(Annotation.Root({ value: Annotation() }))
    .addNode("set", () => ({ value }))
    .addNode("read", (state) => { found = state.value; return {}; })
    .addEdge(START, "set")
    .addEdge("set", "read")
    .compile({ checkpointer: new MemorySaver(), interruptBefore: ["read"] });
  const config = { configurable: { thread_id: "1" } };
  await graph.invoke({ value: 0 }, config);
  await graph.invoke(null, config);
  return found;
}

const graph = new StateGraph(Annotation.Root({ value: Annotation() }))
  .addNode("set", () => ({ value: 10n }))
  .addEdge(START, "set")
  .compile({ checkpointer: new MemorySaver() });
const config = { configurable: { thread_id: "1" } };
assert.deepEqual(await graph.invoke({ value: 0 }, config), { value: 10n });
await assert.rejects(graph.getState(config), (error) => {
  console.log("BigInt: the run ends, its state is read:", String(error));
  return error instanceof TypeError;
});
assert.deepEqual(await resumed({ n: NaN, i: Infinity }), { n: null, i: null });
assert.deepEqual(await resumed({ at: new Date(0) }), { at: "1970-01-01T00:00:00.000Z" });
assert.deepEqual(await resumed({ f: new Float32Array([1.5]) }), { f: { 0: 1.5 } });
const failure = await resumed({ e: new TypeError("late") });
assert.equal(failure.e.constructor, Error);
assert.deepEqual(await resumed({ m: new Map([[1, new Set([2])]]) }), { m: new Map([[1, new Set([2])]]) });
console.log("NaN -> null, Date -> text, Float32Array -> object, TypeError -> Error; Map and Set come back");
JS
node main.mjs
