#!/usr/bin/env bash
# langgraph 1.2.24: what the key of a cached node contains.
#
# Guess: a node that reads the run's context is cached for each context, and two graphs that share a cache do not
# share entries.
# Seen: the key is made of the node's input and of the function's module and qualified name. The result that was made
# for one caller is given to another one, and two nodes of two graphs made by one factory share their entries.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24
"$dir/venv/bin/python" - <<'PYTHON'
import operator
from typing import Annotated, TypedDict

from langgraph.cache.memory import InMemoryCache
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


class Context(TypedDict):
    user: str


def greet(state: State, runtime: Runtime[Context]):
    return {"log": ["for " + runtime.context["user"]]}


graph = StateGraph(State, context_schema=Context)
graph.add_node("greet", greet, cache_policy=CachePolicy())
graph.add_edge(START, "greet")
app = graph.compile(cache=InMemoryCache())
first = app.invoke({"n": 1}, context={"user": "first"})["log"]
second = app.invoke({"n": 1}, context={"user": "second"})["log"]
print("two callers:", first, second)
assert first == second == ["for first"]


def made(name):
    def work(state: State):
        return {"log": [name]}

    graph = StateGraph(State)
    graph.add_node("work", work, cache_policy=CachePolicy())
    graph.add_edge(START, "work")
    return graph


shared = InMemoryCache()
results = [made(name).compile(cache=shared).invoke({"n": 1})["log"] for name in ("red", "blue")]
print("two graphs:", results)
assert results == [["red"], ["red"]]
PYTHON
