"""The refund graph of test/serve, for the reference server."""
import operator
from typing import Annotated, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

ORDERS = {"o-1": 4200, "o-2": 25000, "o-3": 990000}


class Order(TypedDict):
    order_id: str


class State(Order, total=False):
    amount: int
    approved: bool
    receipt: dict
    log: Annotated[list[str], operator.add]


def money(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def told(text):
    get_stream_writer()(text)
    return [text]


def read_order(s: State):
    amount = ORDERS[s["order_id"]]
    return {"amount": amount, "log": told("paid " + money(amount))}


def approval(s: State):
    yes = interrupt(f"Refund {money(s['amount'])} to order {s['order_id']}?")
    return {"approved": yes, "log": ["approved" if yes else "declined"]}


def commit_refund(s: State):
    receipt = {"id": "rf-" + s["order_id"], "amount": s["amount"]}
    return {"receipt": receipt, "log": told("refunded " + receipt["id"])}


def notify(s: State):
    return {"log": ["customer told"]}


graph = StateGraph(State, input_schema=Order)
for node in (read_order, approval, commit_refund, notify):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "read_order")
graph.add_conditional_edges("read_order", lambda s: "approval" if s["amount"] > 10000 else "commit_refund", ["approval", "commit_refund"])
graph.add_conditional_edges("approval", lambda s: "commit_refund" if s["approved"] else "notify", ["commit_refund", "notify"])
graph.add_edge("commit_refund", "notify")
graph.add_edge("notify", END)
refund = graph.compile(name="refund")
