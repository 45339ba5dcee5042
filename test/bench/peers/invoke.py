"""Invokes LangGraph's graphs of graphs.py in this very process, which stays; invoke.mjs does it with LangGraph.js.

    python invoke.py READYFILE SQLITEFILE [POSTGRESDSN]

It writes the address of an HTTP server to READYFILE. GET / tells versions; POST / does a workload once and tells how many
milliseconds invoke took: {"graph", "saver", "mode", "thread", "input", "asks", "at_once"} -> {"ms", "step"}.
"""

import asyncio
import json
import os
import platform
import sqlite3
import sys
import threading
import time
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError, version

from graphs import awaited, builders
from langgraph.types import Command


def graphs(saver, **how):
    return {name: g.compile(checkpointer=saver) for name, g in builders(**how).items()}


def config(thread, given):
    return {"configurable": {"thread_id": thread}, "recursion_limit": given.get("steps", 0) + 10}


def once(app, r):
    given, where = r["input"], config(r["thread"], r["input"])
    began = time.perf_counter()
    out = app.invoke(given, where, durability=r["mode"])
    if r.get("asks"):
        assert "__interrupt__" in out, out
        out = app.invoke(Command(resume=True), where, durability=r["mode"])
    return {"ms": (time.perf_counter() - began) * 1000, "step": out["step"]}


async def crowd(app, r):
    given = r["input"]
    began = time.perf_counter()
    outs = await asyncio.gather(
        *(app.ainvoke(given, config(f"{r['thread']}-{i}", given), durability=r["mode"]) for i in range(r["at_once"]))
    )
    took = (time.perf_counter() - began) * 1000
    steps = {out["step"] for out in outs}
    assert len(steps) == 1, steps
    return {"ms": took, "step": steps.pop()}


class Savers:
    """Graphs by saver: those for one invocation at a time, and those for many at once, made when they are first wanted."""

    def __init__(self, sqlite_file, dsn):
        from langgraph.checkpoint.sqlite import SqliteSaver

        self.sqlite_file, self.dsn = sqlite_file, dsn
        saver = SqliteSaver(sqlite3.connect(sqlite_file, check_same_thread=False))
        saver.setup()
        self.one = {"sqlite": graphs(saver)}
        if dsn:
            from langgraph.checkpoint.postgres import PostgresSaver
            from psycopg import Connection
            from psycopg.rows import dict_row

            with Connection.connect(dsn.rsplit("/", 1)[0] + "/postgres", autocommit=True) as c:
                c.execute("CREATE DATABASE " + dsn.rsplit("/", 1)[1])
            saver = PostgresSaver(Connection.connect(dsn, autocommit=True, prepare_threshold=0, row_factory=dict_row))
            saver.setup()
            self.one["postgres"] = graphs(saver)
        self.many = {}
        self.loop = asyncio.new_event_loop()
        self.open = AsyncExitStack()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def do(self, r):
        if not r.get("at_once"):
            return once(self.one[r["saver"]][r["graph"]], r)
        return asyncio.run_coroutine_threadsafe(self.do_many(r), self.loop).result()

    async def do_many(self, r):
        saver = r["saver"]
        if saver not in self.many:
            if saver == "postgres":
                from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
                from psycopg.rows import dict_row
                from psycopg_pool import AsyncConnectionPool

                kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
                pool = AsyncConnectionPool(self.dsn, min_size=10, max_size=10, open=False, kwargs=kwargs)
                async_saver = AsyncPostgresSaver(await self.open.enter_async_context(pool))
            else:
                from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

                async_saver = await self.open.enter_async_context(AsyncSqliteSaver.from_conn_string(self.sqlite_file))
            self.many[saver] = graphs(async_saver, made=awaited)
        return await crowd(self.many[saver][r["graph"]], r)


def versions():
    out = {"Python": platform.python_version()}
    for name in ("langgraph", "langgraph-checkpoint-postgres", "langgraph-checkpoint-sqlite", "psycopg"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            pass
    return out


def main(ready, sqlite_file, dsn=""):
    savers = Savers(sqlite_file, dsn)

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status, body):
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self):
            self.reply(200, versions())

        def do_POST(self):
            r = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                self.reply(200, savers.do(r))
            except Exception as e:
                self.reply(500, f"{type(e).__name__}: {e}"[:1000])

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    with open(ready + ".new", "w") as f:
        f.write(f"http://127.0.0.1:{server.server_port}")
    os.rename(ready + ".new", ready)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
