"""A graph of LangGraph's own that calls graphs of this server: remote.py URL CONTROL [--only PART]."""
import uuid
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_sync_client

from scenarios import REFUNDED, SCENARIOS, equal, kill, main, scenario

SCENARIOS.clear()


class State(TypedDict, total=False):
    order_id: str
    amount: int
    approved: bool
    receipt: dict
    log: list
    told: str


def parent(base):
    """A graph whose second node is a graph of the server."""
    b = StateGraph(State)
    b.add_node("before", lambda s: {"order_id": "o-2"})
    b.add_node("remote", RemoteGraph("refund", url=base))
    b.add_node("after", lambda s: {"told": s["log"][-1]})
    b.add_edge(START, "before")
    b.add_edge("before", "remote")
    b.add_edge("remote", "after")
    b.add_edge("after", END)
    return b.compile(checkpointer=InMemorySaver())


def asked(base):
    g, conf = parent(base), {"configurable": {"thread_id": str(uuid.uuid4())}}
    got = g.invoke({}, conf)
    equal([q.value for q in got["__interrupt__"]], ["Refund 250.00 to order o-2?"])
    equal(g.get_state(conf).next, ("remote",))
    return g, conf, got["__interrupt__"][0].id


def refunded(got):
    equal(got["log"], REFUNDED)
    equal(got["receipt"], {"id": "rf-o-2", "amount": 25000})
    equal(got["told"], "customer told")


def once(base, conf):
    """One thread, whose log says that the refund was paid once."""
    equal(get_sync_client(url=base).threads.get_state(conf["configurable"]["thread_id"])["values"]["log"], REFUNDED)


@scenario("RemoteGraph: a subgraph's question, answered from outside after a kill")
def _(base, control):
    g, conf, _ = asked(base)
    kill(control, "worker")
    outside = get_sync_client(url=base)
    equal(outside.runs.wait(conf["configurable"]["thread_id"], "refund", command={"resume": True})["log"], REFUNDED)
    kill(control, "worker")
    refunded(g.invoke(None, conf))
    once(base, conf)


@scenario("RemoteGraph: a subgraph's question, answered by its id")
def _(base, control):
    g, conf, question = asked(base)
    kill(control, "worker")
    refunded(g.invoke(Command(resume={question: True}), conf))
    once(base, conf)


@scenario("RemoteGraph: a subgraph whose question is not answered asks again")
def _(base, control):
    g, conf, question = asked(base)
    got = g.invoke(None, conf)
    equal([q.id for q in got["__interrupt__"]], [question])


@scenario("RemoteGraph: invoke, state, stream")
def _(base, control):
    of = get_sync_client(url=base).assistants.search(graph_id="steps")[0]["assistant_id"]
    g, conf = RemoteGraph(of, url=base), {"configurable": {"thread_id": str(uuid.uuid4())}}
    equal(g.invoke({"note": "x"}, conf)["log"], ["a:x", "b:x", "c:x"])
    equal(list(g.get_state(conf).next), [])
    equal([list(u) for u in g.stream({"note": "y"}, conf, stream_mode="updates")], [["a"], ["b"], ["c"]])
    equal(sorted(g.get_graph().nodes), ["__end__", "__start__", "a", "b", "c"])


if __name__ == "__main__":
    main()
