#!/usr/bin/env bash
# langgraph 1.2.24: what a reducer is given with the first write.
#
# Guess: the annotated type decides, and an optional list begins empty or as None; a built-in function is a reducer as
# any other one.
# Seen: int, list and the like begin with their empty value, which the node sees. Optional[list] has no first value: the
# node finds no key, and the first write is taken as it is, without the reducer. The built-in max is refused when the
# graph is made.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24
"$dir/venv/bin/python" - <<'PYTHON'
import operator
from typing import Annotated, Optional, TypedDict

from langgraph.graph import START, StateGraph


def seen(annotation, reducer):
    state = TypedDict("State", {"x": Annotated[annotation, reducer], "y": int})
    calls = []

    def add(old, new):
        calls.append((old, new))
        return reducer(old, new)

    state.__annotations__["x"] = Annotated[annotation, add]
    views = []

    def node(s: state):
        views.append("x" in s)
        return {"x": [1]}

    graph = StateGraph(state)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.compile().invoke({"y": 1})
    return views[0], calls


plain, optional = seen(list, operator.add), seen(Optional[list], operator.add)
print("list: the node sees it, the reducer's calls:", plain)
print("Optional[list]:", optional)
assert plain == (True, [([], [1])])
assert optional == (False, [])
try:
    StateGraph(TypedDict("State", {"x": Annotated[int, max]}))
    raise SystemExit("max was taken")
except ValueError as error:
    print("max:", error)
PYTHON
