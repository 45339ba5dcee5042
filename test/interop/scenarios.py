"""What programs do with langgraph-sdk, both its clients: scenarios.py URL CONTROL [--only PART]."""
import asyncio
import sys
import time
import traceback
import uuid

import httpx
from langgraph_sdk import get_client, get_sync_client

SCENARIOS = {}


def scenario(name):
    def add(fn):
        SCENARIOS[name] = fn
        return fn
    return add


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def kill(control, name):
    """Kills worker or serve, and returns once another one is ready."""
    httpx.post(f"{control}/kill/{name}", timeout=60).raise_for_status()


def until(what, fn, seconds=30):
    end = time.monotonic() + seconds
    while not (got := fn()):
        if time.monotonic() > end:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.1)
    return got


def main():
    base, control = sys.argv[1:3]
    only = sys.argv[4] if sys.argv[3:4] == ["--only"] else ""
    failed = False
    for name, fn in SCENARIOS.items():
        if only not in name:
            continue
        began, why = time.monotonic(), ""
        try:
            asyncio.run(fn(base, control)) if asyncio.iscoroutinefunction(fn) else fn(base, control)
        except Exception as e:  # noqa: BLE001
            failed = True
            at = traceback.extract_tb(e.__traceback__)
            here = next((f.lineno for f in reversed(at) if f.filename == sys.argv[0]), 0)
            why = f": line {here}: {type(e).__name__}: {e}".replace("\n", " ")[:600]
        print(f"{'FAIL' if why else 'ok  '} {name} ({time.monotonic() - began:.1f} s){why}", flush=True)
    sys.exit(1 if failed else 0)


REFUNDED = ["paid 250.00", "approved", "refunded rf-o-2", "customer told"]


@scenario("python: ask, answer, read back")
def _(base, control):
    c = get_sync_client(url=base)
    t = c.threads.create(metadata={"of": "interop"})["thread_id"]
    asked = c.runs.wait(t, "refund", input={"order_id": "o-2"})
    equal([q["value"] for q in asked["__interrupt__"]], ["Refund 250.00 to order o-2?"])
    state = c.threads.get_state(t)
    equal(state["next"], ["approval"])
    equal(c.threads.get(t)["status"], "interrupted")
    equal(c.runs.wait(t, "refund", command={"resume": True})["log"], REFUNDED)
    history = c.threads.get_history(t, limit=20)
    equal([h["metadata"]["step"] for h in history], [4, 3, 2, 1, 0, -1])
    before = next(h for h in history if h["next"] == ["approval"])
    declined = c.runs.wait(t, "refund", checkpoint=before["checkpoint"], input=None)
    equal(len(declined["__interrupt__"]), 1)
    equal(c.runs.wait(t, "refund", command={"resume": False})["log"], ["paid 250.00", "declined", "customer told"])


@scenario("python: a run outlives worker and server")
def _(base, control):
    c = get_sync_client(url=base)
    t = c.threads.create()["thread_id"]
    run = c.runs.create(t, "slow", input={"steps": 6, "delay_ms": 300})["run_id"]
    until("a tick", lambda: (c.threads.get_state(t)["values"] or {}).get("log"))
    kill(control, "worker")
    kill(control, "serve")
    equal(c.runs.join(t, run)["log"], [f"tick {n + 1}" for n in range(6)])
    equal(c.runs.get(t, run)["status"], "success")


@scenario("python: second messages wait their turn")
def _(base, control):
    c = get_sync_client(url=base)
    t = c.threads.create()["thread_id"]
    runs = [c.runs.create(t, "steps", input={"note": n}, multitask_strategy="enqueue")["run_id"] for n in ("x", "y")]
    equal(c.runs.join(t, runs[1])["log"], ["a:x", "b:x", "c:x", "a:y", "b:y", "c:y"])
    equal([r["status"] for r in c.runs.list(t)], ["success", "success"])


@scenario("python: cancel, rollback")
def _(base, control):
    c = get_sync_client(url=base)
    t = c.threads.create()["thread_id"]
    slow = {"steps": 200, "delay_ms": 200}
    run = c.runs.create(t, "slow", input=slow)["run_id"]
    until("a tick", lambda: (c.threads.get_state(t)["values"] or {}).get("log"))
    c.runs.cancel(t, run, wait=True)
    equal(c.runs.get(t, run)["status"], "interrupted")
    kept = c.threads.get_state(t)["values"]["log"]
    other = c.runs.create(t, "slow", input=slow)["run_id"]
    until("another tick", lambda: len(c.threads.get_state(t)["values"]["log"]) > len(kept))
    c.runs.cancel(t, other, wait=True, action="rollback")
    equal(c.threads.get_state(t)["values"]["log"], kept)
    equal([r["run_id"] for r in c.runs.list(t)], [run])


@scenario("python: threads and assistants are found, items kept")
def _(base, control):
    c = get_sync_client(url=base)
    mark = str(uuid.uuid4())
    t = c.threads.create(metadata={"mark": mark})["thread_id"]
    equal([x["thread_id"] for x in c.threads.search(metadata={"mark": mark})], [t])
    c.threads.delete(t)
    equal(c.threads.search(metadata={"mark": mark}), [])
    a = c.assistants.create("greet", name=mark, context={"tone": "casual"})
    equal([x["assistant_id"] for x in c.assistants.search(graph_id="greet") if x["name"] == mark], [a["assistant_id"]])
    said = c.runs.wait(None, a["assistant_id"], input={"name": "Bo"}, context={"user": "ann"})
    equal(said["greeting"], "Hey, Bo (from ann)")
    c.assistants.delete(a["assistant_id"])
    c.store.put_item([mark, "notes"], "k", {"n": 1})
    equal(c.store.get_item([mark, "notes"], "k")["value"], {"n": 1})
    equal([i["key"] for i in c.store.search_items([mark], filter={"n": 1})["items"]], ["k"])
    c.store.delete_item([mark, "notes"], "k")


@scenario("python: tokens of a model, asynchronously")
async def _(base, control):
    c = get_client(url=base)
    t = (await c.threads.create())["thread_id"]
    text, values = {}, None
    async for part in c.runs.stream(t, "chat", input={"messages": [{"role": "user", "content": "hi there"}]},
                                    stream_mode=["messages-tuple", "values"], stream_resumable=True):
        if part.event == "messages":
            text[part.data[0]["id"]] = text.get(part.data[0]["id"], "") + part.data[0]["content"]
        elif part.event == "values":
            values = part.data
    last = values["messages"][-1]
    equal([last["type"], last["content"]], ["ai", "You said hi there"])
    equal(text.get(last["id"]), last["content"])


@scenario("python: a stream goes on while worker and server are killed")
async def _(base, control):
    c = get_client(url=base)
    t = (await c.threads.create())["thread_id"]
    log, killed = [], []
    async for part in c.runs.stream(t, "slow", input={"steps": 8, "delay_ms": 300}, stream_mode="updates", stream_resumable=True):
        if part.event == "error":
            raise AssertionError(part.data)
        if part.event != "updates":
            continue
        log += part.data["tick"]["log"]
        for at, name in ((2, "serve"), (4, "worker")):
            if len(log) >= at and name not in killed:
                killed.append(name)
                await asyncio.to_thread(kill, control, name)
    equal(log, [f"tick {n + 1}" for n in range(8)])


@scenario("python: two questions, answered one by one")
async def _(base, control):
    c = get_client(url=base)
    t = (await c.threads.create())["thread_id"]
    asked = (await c.runs.wait(t, "panel", input={"subject": "plan"}))["__interrupt__"]
    ids = {q["value"]["who"]: q["id"] for q in asked}
    equal(sorted(ids), ["finance", "legal"])
    left = await c.runs.wait(t, "panel", command={"resume": {ids["legal"]: "yes"}})
    equal([q["id"] for q in left["__interrupt__"]], [ids["finance"]])
    done = await c.runs.wait(t, "panel", command={"resume": {ids["finance"]: "no"}})
    equal(done["verdict"], "finance: no; legal: yes")


if __name__ == "__main__":
    main()
