"""The graphs of graphs.go for LangGraph in Python: invoke.py invokes them, plugin.py runs them on Temporal."""

import asyncio
import functools
import inspect
import json
import operator
import os
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

CALL_TEXTS = 800


class State(TypedDict, total=False):
    steps: int
    step: int
    note: str
    texts: Annotated[list, operator.add]
    done: Annotated[list, operator.add]


def again(state):
    return {"step": state.get("step", 0) + 1}


def call(state):
    noted = {"texts": ["noted"]} if len(state["texts"]) >= CALL_TEXTS else {}
    return {"step": state.get("step", 0) + 1, **noted}


def leaf(state):
    return {"done": [state["steps"]]}


def join(state):
    return {"step": len(state["done"])}


def ask(state):
    interrupt("go on?")
    return {"step": 1}


def answered(state):
    return {"step": state["step"] + 1}


def hear(state):
    return {"step": len(state["texts"])}


def tell(node):
    """Writes the line that notice.go reads. Only plugin.py runs the graph that is killed."""
    from temporalio import activity

    info = {"pid": os.getpid(), "thread": activity.info().workflow_id, "node": node, "at": time.time_ns()}
    os.write(1, json.dumps(info).encode() + b"\n")


async def work(state):
    tell("work")
    await asyncio.sleep(1)
    return {"step": 1}


async def next_one(state):
    tell("next")
    return {"step": 2}


def more(state):
    return "again" if state["step"] < state["steps"] else END


def each(state):
    return [Send("leaf", {"steps": i}) for i in range(state["steps"])]


def awaited(f):
    """The same as a coroutine, for ainvoke: no node waits for a thread."""
    if inspect.iscoroutinefunction(f):
        return f

    @functools.wraps(f)
    async def g(state):
        return f(state)

    return g


def builders(made=lambda f: f, metadata=None):
    """All graphs by name, which nobody has compiled. made makes what LangGraph gets of a function, metadata is that of each node."""

    def graph(**nodes):
        g = StateGraph(State)
        for name, f in nodes.items():
            g.add_node(name, made(f), metadata=dict(metadata or {}))
        return g

    def loop(f):
        g = graph(again=f)
        g.add_edge(START, "again")
        g.add_conditional_edges("again", made(more), ["again", END])
        return g

    fan = graph(leaf=leaf, join=join)
    fan.add_conditional_edges(START, made(each), ["leaf"])
    fan.add_edge("leaf", "join")
    question = graph(ask=ask, answered=answered)
    question.add_edge(START, "ask")
    question.add_edge("ask", "answered")
    talk = graph(hear=hear)
    talk.add_edge(START, "hear")
    slow = graph(work=work, next=next_one)
    slow.add_edge(START, "work")
    slow.add_edge("work", "next")
    return {"chain": loop(again), "calls": loop(call), "fan": fan, "ask": question, "talk": talk, "slow": slow}
