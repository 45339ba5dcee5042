"""Asks LangGraph for its answers to conformance cases. The recorder (go run ./test/conformance/recorder) starts this program in
an environment with one release of LangGraph and writes one request a line to its standard input:

    {"case": CASE}                  a case as FORMAT.md describes it
    {"case": CASE, "drawn": true}   a case that was drawn: an action that names a question, a subgraph or a checkpoint that
                                    is not there then names one that is

The first line of standard output says which packages answer; after it each line answers a request:

    {"expect": [RESULT..], "actions": [ACTION..]}    what LangGraph answered, and the actions that were done
    {"failure": TEXT}                                why this program could not do the case

The graph, the scripts and the actions of a case are run on LangGraph itself; nothing here knows what the answer should be.
"""

import copy
import json
import re
import sys
import threading
import time
import traceback
from importlib.metadata import version
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.channels import AnyValue, BinaryOperatorAggregate, EphemeralValue, Topic, UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError, ParentCommand
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, RetryPolicy, Send, interrupt

RUN_ACTIONS = ("invoke", "resume", "resume_map", "command")
DEFAULT_MODES = ["values", "updates", "custom"]
DEFAULT_LIMIT = 25
PACKAGES = ("langgraph", "langgraph-checkpoint", "langchain-core")


class NodeFailure(Exception):
    """What a fail operation raises."""


class Return(Exception):
    """Ends a script early."""


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def counts_as_false(value):
    return value is None or value is False or value in (0, "", [], {}) and value is not True


# Channels.

REDUCERS = {
    "sum": (0, lambda a, b: a + b),
    "max": (0, max),
    "append": ([], lambda a, b: a + b),
    "concat": ("", lambda a, b: a + b),
    "merge": ({}, lambda a, b: {**a, **b}),
}


def starting_with(zero):
    """A type whose empty value is zero: that is how a reducer channel learns what it begins with."""

    class Start:
        def __new__(cls):
            return copy.deepcopy(zero)

    return Start


def channel(spec):
    kind = spec["kind"]
    if kind == "last":
        return Any
    if kind == "messages":
        return Annotated[list, add_messages]
    if kind in REDUCERS:
        zero, reduce = REDUCERS[kind]
        return Annotated[Any, BinaryOperatorAggregate(starting_with(spec.get("default", zero)), reduce)]
    return Annotated[Any, {
        "any": lambda: AnyValue(Any),
        "ephemeral": lambda: EphemeralValue(Any),
        "ephemeral_any": lambda: EphemeralValue(Any, guard=False),
        "untracked": lambda: UntrackedValue(Any),
        "untracked_any": lambda: UntrackedValue(Any, guard=False),
        "topic": lambda: Topic(Any),
        "topic_accumulate": lambda: Topic(Any, accumulate=True),
    }[kind]()]


# Messages.

ROLES = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
TYPES = {"human": "user", "ai": "assistant", "system": "system"}


def to_message(value):
    if isinstance(value, list):
        return [to_message(v) for v in value]
    if not isinstance(value, dict) or "role" not in value:
        return value
    if value["role"] == "remove":
        return RemoveMessage(id=value["id"])
    return ROLES[value["role"]](content=value["content"], id=value.get("id"))


def message_ids(value):
    """The ids that a case gives to messages; all others are LangGraph's own."""
    if isinstance(value, dict):
        if "role" in value and isinstance(value.get("id"), str):
            yield value["id"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from message_ids(inner)


class Frame:
    """One execution of a script."""

    def __init__(self, given, kinds):
        self.given, self.kinds = given, kinds
        self.vars, self.item = {}, None
        self.writes, self.goto, self.routes = {}, [], []
        self.moved = self.parent = self.nothing = False

    def eval(self, e):
        if not (isinstance(e, dict) and len(e) == 1 and next(iter(e)).startswith("$")):
            return e
        op, arg = next(iter(e.items()))
        return getattr(self, "e_" + op[1:])(arg)

    def all(self, args):
        return [self.eval(a) for a in args]

    def e_get(self, name):
        return self.given.get(name) if isinstance(self.given, dict) else None

    def e_arg(self, _):
        return self.given

    def e_var(self, name):
        return self.vars.get(name)

    def e_item(self, _):
        return self.item

    def e_len(self, arg):
        value = self.eval(arg)
        return 0 if value is None else len(value)

    def e_add(self, args):
        return sum(v or 0 for v in self.all(args))

    def e_lt(self, args):
        a, b = (v or 0 for v in self.all(args))
        return a < b

    def e_cat(self, args):
        values = self.all(args)
        if all(isinstance(v, list) for v in values):
            return [x for v in values for x in v]
        return "".join(v if isinstance(v, str) else canonical(v) for v in values)

    def e_eq(self, args):
        a, b = self.all(args)
        return canonical(a) == canonical(b)

    def e_not(self, arg):
        return counts_as_false(self.eval(arg))

    def e_list(self, args):
        return self.all(args)

    def e_obj(self, fields):
        return {k: self.eval(v) for k, v in fields.items()}

    def e_at(self, args):
        value, key = self.all(args)
        try:
            return value[key]
        except (KeyError, IndexError, TypeError):
            return None

    def targets(self, targets):
        out = []
        for t in targets:
            if not (isinstance(t, dict) and "send" in t):
                out.append(self.eval(t))
            elif "each" in t:
                for self.item in self.eval(t["each"]) or []:
                    out.append(Send(t["send"], self.eval(t.get("arg"))))
            else:
                out.append(Send(t["send"], self.eval(t.get("arg"))))
        return out


class Recorder:
    """One case on LangGraph."""

    def __init__(self, case):
        self.case, self.saved = case, case.get("checkpointer") is not False
        self.runs, self.failures, self.lock = {}, {}, threading.Lock()
        self.ids = set(message_ids([case["graph"], case.get("graphs", {}), case["actions"]]))
        self.kinds = {k: c["kind"] for k, c in case["graph"]["channels"].items()}
        self.graphs = {}

    def record(self):
        try:
            for name in self.case.get("graphs", {}):
                self.subgraph(name)
            self.app = self.compile(self.case["graph"], "", InMemorySaver() if self.saved else None)
        except Exception:
            return [{"error": {"type": "CompileError"}}]
        return [self.act(a) for a in self.case["actions"]]

    # The graph.

    def subgraph(self, name):
        if name not in self.graphs:
            spec = self.case["graphs"][name]
            for other in list(self.called(spec)):
                self.subgraph(other)
            self.graphs[name] = self.compile(spec, name + ".", (spec.get("compile") or {}).get("checkpointer"))
        return self.graphs[name]

    def called(self, value):
        if isinstance(value, dict):
            if value.get("op") == "call":
                yield value["graph"]
            if isinstance(value.get("subgraph"), str):
                yield value["subgraph"]
            value = list(value.values())
        if isinstance(value, list):
            for inner in value:
                yield from self.called(inner)

    def compile(self, spec, prefix, checkpointer):
        types = {k: channel(c) for k, c in spec["channels"].items()}
        kinds = {k: c["kind"] for k, c in spec["channels"].items()}
        schemas = {f"{s}_schema": TypedDict(s, {k: types[k] for k in spec[s]}) for s in ("input", "output") if s in spec}
        builder = StateGraph(TypedDict("State", types), **schemas)
        for n in spec["nodes"]:
            options = {"defer": True} if n.get("defer") else {}
            if "retry" in n:
                options["retry_policy"] = RetryPolicy(
                    initial_interval=0, jitter=False, max_attempts=n["retry"]["max_attempts"], retry_on=Exception)
            run = self.graphs[n["subgraph"]] if "subgraph" in n else self.node(prefix + n["name"], n["script"], kinds)
            builder.add_node(n["name"], run, **options)
        for source, target in spec["edges"]:
            builder.add_edge(source, target)
        for i, b in enumerate(spec.get("branches") or []):
            builder.add_conditional_edges(b["from"], self.branch(f"branch_{i}", b["script"], kinds),
                                          *([b["paths"]] if "paths" in b else []))
        stops = {k: v for k, v in (spec.get("compile") or {}).items() if k.startswith("interrupt_")}
        return builder.compile(checkpointer=checkpointer, **stops)

    def node(self, name, script, kinds):
        def run(state):
            with self.lock:
                self.runs[name] = self.runs.get(name, 0) + 1
            f = self.execute(script, state, kinds)
            if f.nothing:
                return None
            if not f.moved:
                return f.writes
            return Command(goto=f.goto, update=f.writes or None, graph=Command.PARENT if f.parent else None)

        return run

    def branch(self, name, script, kinds):
        def route(state):
            return self.execute(script, state, kinds).routes

        route.__name__ = name
        return route

    def execute(self, script, state, kinds):
        f = Frame(self.plain(state) if isinstance(state, dict) else state, kinds)
        try:
            self.steps(script, f)
        except Return:
            pass
        return f

    def steps(self, script, f):
        for op in script:
            getattr(self, "o_" + op["op"])(op, f)

    def o_write(self, op, f):
        value = f.eval(op["value"])
        f.writes[op["channel"]] = to_message(value) if f.kinds.get(op["channel"]) == "messages" else value

    def o_let(self, op, f):
        f.vars[op["var"]] = f.eval(op["value"])

    def o_if(self, op, f):
        self.steps(op.get("else", []) if counts_as_false(f.eval(op["cond"])) else op["then"], f)

    def o_goto(self, op, f):
        f.goto += f.targets(op["to"])
        f.moved, f.parent = True, f.parent or op.get("graph") == "parent"

    def o_route(self, op, f):
        f.routes += f.targets(op["to"])

    def o_interrupt(self, op, f):
        answer = interrupt(f.eval(op["value"]))
        if "into" in op:
            f.vars[op["into"]] = answer

    def o_fail(self, op, f):
        with self.lock:
            count = self.failures[id(op)] = self.failures.get(id(op), 0) + 1
        if count <= op.get("times", count):
            raise NodeFailure(op["message"])

    def o_custom(self, op, f):
        get_stream_writer()(f.eval(op["value"]))

    def o_call(self, op, f):
        f.vars[op["into"]] = self.plain(self.graphs[op["graph"]].invoke(f.eval(op["input"])))

    def o_sleep(self, op, f):
        time.sleep(op["ms"] / 1000)

    def o_return_nothing(self, op, f):
        f.nothing = True
        raise Return

    # Values as the format has them.

    def plain(self, v):
        if isinstance(v, RemoveMessage):
            return {"role": "remove", "id": v.id}
        if isinstance(v, BaseMessage):
            return self.plain({"role": TYPES[v.type], "content": v.content, "id": v.id})
        if isinstance(v, Send):
            return {"send": v.node, "arg": self.plain(v.arg)}
        if isinstance(v, dict):
            out = {k: self.plain(x) for k, x in v.items()}
            if out.get("role") in ROLES and "content" in out and out.get("id") not in self.ids:
                out["id"] = "auto"
            return out
        if isinstance(v, (list, tuple)):
            return [self.plain(x) for x in v]
        return v

    def questions(self, interrupts):
        return sorted((self.plain(i["value"] if isinstance(i, dict) else i.value) for i in interrupts), key=canonical)

    def error(self, e):
        if isinstance(e, NodeFailure):
            return {"type": "NodeFailure", "message": str(e)}
        for kind in (InvalidUpdateError, GraphRecursionError, EmptyInputError, ParentCommand):
            if isinstance(e, kind):
                return {"type": kind.__name__}
        ambiguous = isinstance(e, RuntimeError) and "multiple pending interrupts" in str(e)
        return {"type": "MultipleInterruptsError" if ambiguous else "Error"}

    def error_text(self, e):
        """A stored error is its repr."""
        if isinstance(e, Exception):
            known = self.error(e)
            return known.get("message", known["type"])
        failure = re.match(r"^NodeFailure\((['\"])(.*)\1\)$", e, re.S)
        kind = e.split("(")[0]
        if failure:
            return failure.group(2)
        return kind if kind in ("InvalidUpdateError", "GraphRecursionError", "EmptyInputError") else "Error"

    def snapshot(self, s, deep=False):
        tasks = []
        for t in s.tasks:
            task = {"name": t.name, "interrupts": self.questions(t.interrupts)}
            if t.error is not None:
                task["error"] = self.error_text(t.error)
            if deep and t.state is not None and not isinstance(t.state, dict):
                task["state"] = self.snapshot(t.state, True)
            tasks.append(task)
        metadata = s.metadata and {"source": s.metadata["source"], "step": s.metadata["step"]}
        return {"values": self.plain(s.values), "next": list(s.next), "tasks": tasks, "metadata": metadata}

    # Actions.

    def thread(self, action):
        return {"configurable": {"thread_id": action.get("thread", "1")}} if self.saved else {}

    def place(self, action):
        config = self.thread(action)
        if "subgraph" in action:
            config = self.pending(config, action["subgraph"])
        if action.get("from_checkpoint") is not None:
            config = list(self.app.get_state_history(config))[action["from_checkpoint"]].config
        return config

    def pending(self, config, path):
        state = self.app.get_state(config, subgraphs=True)
        for name in path:
            state = next(t.state for t in state.tasks if t.name == name and t.state is not None)
        found = state.config["configurable"]
        return {"configurable": {k: found[k] for k in ("thread_id", "checkpoint_ns")}}

    def values(self, given):
        if not isinstance(given, dict):
            return given
        return {k: to_message(v) if self.kinds.get(k) == "messages" else v for k, v in copy.deepcopy(given).items()}

    def act(self, action):
        if "update_state" in action:
            return self.update(action)
        if "get_state" in action:
            deep = action["get_state"] == "subgraphs"
            return {"state": self.snapshot(self.app.get_state(self.place(action), subgraphs=deep), deep)}
        if "history" in action:
            return self.history(action)
        return self.run(action)

    def with_state(self, action, out):
        if self.saved:
            try:
                out["state"] = self.snapshot(self.app.get_state(self.thread(action)))
            except Exception:
                pass  # writes that conflict: the state cannot be read, and is not to be checked
        return out

    def update(self, action):
        out, update = {}, action["update_state"]
        try:
            self.app.update_state(self.place(action), self.values(update["values"]), as_node=update.get("as_node"))
        except Exception as e:
            out["error"] = self.error(e)
        return self.with_state(action, out)

    def history(self, action):
        states = list(self.app.get_state_history(self.place(action)))
        ids = [s.config["configurable"]["checkpoint_id"] for s in states]
        out = []
        for s in states:
            parent = s.parent_config and s.parent_config["configurable"]["checkpoint_id"]
            out.append({"values": self.plain(s.values), "next": list(s.next), "source": s.metadata["source"],
                        "step": s.metadata["step"], "parent": ids.index(parent) if parent in ids else None})
        return {"history": out}

    def input(self, action):
        if "invoke" in action:
            return self.values(action["invoke"])
        given = action.get("command") or {k: action[k] for k in ("resume", "resume_map") if k in action}
        command = {k: given[k] for k in ("resume",) if k in given}
        if "resume_map" in given:
            command["resume"] = self.by_id(action, given["resume_map"])
        if "update" in given:
            command["update"] = self.values(given["update"])
        if "goto" in given:
            command["goto"] = Frame(None, {}).targets(given["goto"])
        return Command(**command)

    def by_id(self, action, answers):
        out = {}
        for task in self.app.get_state(self.thread(action)).tasks:
            for question in task.interrupts:
                value = self.plain(question.value)
                key = value if isinstance(value, str) else canonical(value)
                if key in answers:
                    out[question.id] = answers[key]
        return out

    def run(self, action):
        self.runs, out, streams = {}, {}, {(): []}
        deep, modes = action.get("subgraphs", False), action.get("modes", DEFAULT_MODES)
        options = {k: action[k] for k in ("interrupt_before", "interrupt_after", "durability") if k in action}
        if "output" in self.case["graph"]:
            options["output_keys"] = list(self.case["graph"]["output"])
        try:
            config = {**self.place(action), "recursion_limit": action.get("recursion_limit", DEFAULT_LIMIT)}
            for part in self.app.stream(self.input(action), config, stream_mode=modes, subgraphs=deep, **options):
                namespace, mode, chunk = part if deep else ((), *part)
                stream = streams.setdefault(namespace, [])
                chunk = self.chunk(mode, copy.deepcopy(chunk))
                if chunk is not None:
                    stream.append([mode, chunk])
        except Exception as e:
            out["error"] = self.error(e)
        out["stream"] = in_order(streams.pop(()))
        if deep:
            out["substreams"] = sorted(([names(n), in_order(s)] for n, s in streams.items()), key=canonical)
        if "error" not in out:
            self.outcome(out)
        out["runs"] = self.runs
        return self.with_state(action, out)

    def outcome(self, out):
        shown = [c for mode, c in out["stream"] if mode == "values"]
        asked = [q for mode, c in out["stream"] if mode == "updates" for q in c.get("__interrupt__", [])]
        out["output"] = shown[-1] if shown else None
        if asked:
            out["interrupts"] = asked

    def chunk(self, mode, chunk):
        if mode == "values" and "__interrupt__" in chunk:
            return None
        if mode == "updates" and "__interrupt__" in chunk:
            return {"__interrupt__": self.questions(chunk["__interrupt__"])}
        if mode != "tasks":
            return self.plain(chunk)
        if "input" in chunk:
            return {"name": chunk["name"], "input": self.plain(chunk["input"])}
        if chunk.get("error"):
            return None
        return {"name": chunk["name"], "result": self.plain(chunk["result"]), "interrupts": self.questions(chunk["interrupts"])}


class Drawn(Recorder):
    """A case that was drawn without knowing what its graph does."""

    def act(self, action):
        if "subgraph" in action:
            self.settle_subgraph(action)
        if "from_checkpoint" in action:
            self.settle_checkpoint(action)
        for part in (action, action.get("command", {})):
            if "resume_map" in part:
                self.settle_answers(action, part)
        return super().act(action)

    def settle_subgraph(self, action):
        there = list(self.paths(self.app.get_state(self.thread(action), subgraphs=True)))
        if action["subgraph"] not in there:
            del action["subgraph"]
            if there:
                action["subgraph"] = there[0]

    def paths(self, state, above=()):
        for task in state.tasks:
            if task.state is not None and not isinstance(task.state, dict):
                yield [*above, task.name]
                yield from self.paths(task.state, (*above, task.name))

    def settle_checkpoint(self, action):
        config = self.pending(self.thread(action), action["subgraph"]) if "subgraph" in action else self.thread(action)
        there = len(list(self.app.get_state_history(config)))
        action["from_checkpoint"] = min(action["from_checkpoint"], there - 1)
        if there == 0:
            del action["from_checkpoint"]

    def settle_answers(self, action, part):
        """Answers to questions that are not open are left out; when none is, the first one names nothing."""
        answers = part.pop("resume_map")
        there = {k: v for k, v in answers.items() if self.by_id(action, {k: v})}
        if there:
            part["resume_map"] = there
        else:
            part["resume"] = next(iter(answers.values()), "yes")


def names(namespace):
    """Node names. A subgraph that its task runs once more has a number behind its name."""
    return [s.split(":")[0] for s in namespace]


def in_order(stream):
    """Between two values chunks the tasks of a superstep finish in any order."""
    out, between = [], []
    for pair in stream:
        if pair[0] == "values":
            out += sorted(between, key=canonical) + [pair]
            between = []
        else:
            between.append(pair)
    return out + sorted(between, key=canonical)


def answer(request):
    recorder = (Drawn if request.get("drawn") else Recorder)(request["case"])
    try:
        expect = recorder.record()
        return {"expect": expect, "actions": request["case"]["actions"]}
    except Exception:
        return {"failure": traceback.format_exc()}


def main():
    print(json.dumps({"packages": {p: version(p) for p in PACKAGES}}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
