#!/usr/bin/env bash
# langgraph 1.2.24: which failures the default retry policy tries again, and what two policies count.
#
# Guess: failures that pass are tried again (a time-out, a name that could not be resolved), and mistakes of a program
# are not (a failed assertion, no memory). Two policies of a node count their attempts apart.
# Seen: OSError and all that inherit from it are not tried again, but for ConnectionError: neither TimeoutError nor
# socket.gaierror is. AssertionError and MemoryError are. The attempts of two policies are one count.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24
"$dir/venv/bin/python" - <<'PYTHON'
import socket
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict):
    n: int


def attempts(failure, policy):
    count = 0

    def node(state: State):
        nonlocal count
        count += 1
        raise failure(count)

    graph = StateGraph(State)
    graph.add_node("node", node, retry_policy=policy)
    graph.add_edge(START, "node")
    try:
        graph.compile().invoke({"n": 1})
    except Exception:
        return count
    raise SystemExit("the run did not fail")


default = RetryPolicy(initial_interval=0.001, max_attempts=3)
kinds = (ConnectionError, TimeoutError, socket.gaierror, OSError, AssertionError, MemoryError)
tried = {kind.__name__: attempts(lambda n, kind=kind: kind("x"), default) for kind in kinds}
print("attempts of three:", tried)
assert tried == {
    "ConnectionError": 3, "TimeoutError": 1, "gaierror": 1, "OSError": 1, "AssertionError": 3, "MemoryError": 3,
}

pair = [
    RetryPolicy(initial_interval=0.001, max_attempts=3, retry_on=ConnectionError),
    RetryPolicy(initial_interval=0.001, max_attempts=5, retry_on=KeyError),
]
both = attempts(lambda n: (ConnectionError if n % 2 else KeyError)("x"), pair)
print("two policies, of 3 and 5 attempts, in turns:", both)
assert both == 3
PYTHON
