"""Serves graphs.py with Temporal's plugin for LangGraph: each node is an activity, with the time limit of the plugin's own examples.

    python plugin.py READYFILE ADDRESS TASKQUEUE

The workflows take the updates of those that are written by hand, in floor.go. READYFILE is made when the worker polls.
"""

import asyncio
import os
import sys
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.langgraph import LangGraphPlugin, graph
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from graphs import awaited, builders
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

NODE = {"execute_in": "activity", "start_to_close_timeout": timedelta(seconds=30)}


def config(given):
    return {"configurable": {"thread_id": "1"}, "recursion_limit": given.get("steps", 0) + 10}


@workflow.defn(name="plugin.run")
class Run:
    def __init__(self):
        self.out, self.answered, self.ended = None, False, False

    @workflow.run
    async def run(self, given: dict) -> dict:
        name = given.pop("graph")
        app = graph(name).compile(checkpointer=InMemorySaver() if name == "ask" else None)
        out = await app.ainvoke(given, config(given))
        if "__interrupt__" in out:
            self.out = {"step": 0, "question": out["__interrupt__"][0].value}
            await workflow.wait_condition(lambda: self.answered)
            out = await app.ainvoke(Command(resume=True), config(given))
        self.out, self.ended = {"step": out.get("step", 0)}, True
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.out

    @workflow.update
    async def rest(self) -> dict:
        await workflow.wait_condition(lambda: self.out is not None)
        return self.out

    @workflow.update
    async def answer(self, _: bool) -> dict:
        self.answered = True
        await workflow.wait_condition(lambda: self.ended)
        return self.out


@workflow.defn(name="plugin.talk")
class Talk:
    @workflow.init
    def __init__(self, past: list):
        self.past, self.app = past, None

    @workflow.run
    async def run(self, past: list) -> None:
        self.app = graph("talk").compile()
        await workflow.wait_condition(
            lambda: workflow.info().is_continue_as_new_suggested() and workflow.all_handlers_finished()
        )
        workflow.continue_as_new(self.past)

    @workflow.update
    async def turn(self, said: str) -> dict:
        await workflow.wait_condition(lambda: self.app is not None)
        out = await self.app.ainvoke({"texts": [*self.past, said]})
        self.past = out["texts"]
        return {"step": out["step"]}


async def main(ready, address, queue):
    client = await Client.connect(address)
    plugin = LangGraphPlugin(graphs=builders(made=awaited, metadata=NODE))
    async with Worker(client, task_queue=queue, workflows=[Run, Talk], plugins=[plugin]):
        with open(ready + ".new", "w") as f:
            f.write("polls")
        os.rename(ready + ".new", ready)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
