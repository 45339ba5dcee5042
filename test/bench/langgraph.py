"""Runs the loop of the durability figures on LangGraph and prints how many milliseconds it took.

    python langgraph.py MODE STEPS NOTE
"""

import sys
import time
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    turn: int
    note: str


def main(mode: str, steps: int, note: str) -> None:
    graph = StateGraph(State)
    graph.add_node("again", lambda state: {"turn": state.get("turn", 0) + 1})
    graph.add_edge(START, "again")
    graph.add_conditional_edges("again", lambda state: "again" if state["turn"] < steps else END, ["again", END])
    app = graph.compile(checkpointer=InMemorySaver())
    for thread in ("warm", "counts"):  # the first run fills caches
        began = time.perf_counter()
        out = app.invoke(
            {"note": note},
            {"configurable": {"thread_id": thread}, "recursion_limit": steps + 1},
            durability=mode,
        )
        took = time.perf_counter() - began
        assert out["turn"] == steps, out
    print(took * 1000)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
