#!/usr/bin/env bash
# langgraph 1.2.24: a node that changes its input in place and returns nothing.
#
# Guess: the change is never seen, because only returned values are written.
# Seen: as long as the run stays in one process the next node sees the change, and so does a sibling that runs at the
# same time. A run that stopped in between and is resumed from its checkpoint does not have it: the same graph with the
# same input gives two results.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24
"$dir/venv/bin/python" - <<'PYTHON'
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class State(TypedDict):
    order: dict


def check(state: State):
    state["order"]["checked"] = True


def ship(state: State):
    return {"order": {**state["order"], "shipped": True}}


graph = StateGraph(State)
graph.add_node("check", check)
graph.add_node("ship", ship)
graph.add_edge(START, "check")
graph.add_edge("check", "ship")

straight = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
uninterrupted = straight.invoke({"order": {}}, config)["order"]

stopped = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["ship"])
stopped.invoke({"order": {}}, config)
resumed = stopped.invoke(None, config)["order"]
print("uninterrupted:", uninterrupted)
print("resumed:", resumed)
assert uninterrupted == {"checked": True, "shipped": True}
assert resumed == {"shipped": True}
PYTHON
