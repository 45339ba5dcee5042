#!/usr/bin/env bash
# langgraph 1.2.24: what of a run's configuration a checkpoint keeps.
#
# Guess: the metadata that the caller gave, whole; "configurable" is for the nodes of this run and is not stored.
# Seen: texts and numbers of "configurable" are stored in the metadata of every checkpoint, but for names that begin
# with two underscores. Metadata that is an object is left out without a word; tags are not stored.
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
    n: int


graph = StateGraph(State)
graph.add_node("node", lambda state: {"n": 2})
graph.add_edge(START, "node")
app = graph.compile(checkpointer=InMemorySaver())
app.invoke(
    {"n": 1},
    {
        "configurable": {"thread_id": "1", "region": "north", "__region": "south", "options": {"a": 1}},
        "metadata": {"ticket": 7, "customer": {"id": 1}},
        "tags": ["night"],
    },
)
metadata = app.get_state({"configurable": {"thread_id": "1"}}).metadata
print(metadata)
assert metadata == {"source": "loop", "step": 1, "parents": {}, "ticket": 7, "region": "north"}
PYTHON
