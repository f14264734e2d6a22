"""A plain loop over httpx, without a store: over its own pool, or with ``aiohttp`` as the fourth word over that."""

from __future__ import annotations

import asyncio
import json
import sys

import httpx
from meter import Meter, Work, body


async def main():
    work = Work(sys.argv)
    with Meter() as meter:
        answers = await call_all(work, client(work.concurrency))
    meter.report(len(answers))


def client(concurrency):
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    transport = None
    if sys.argv[4:] == ["aiohttp"]:
        from httpx_aiohttp import AiohttpTransport

        transport = AiohttpTransport(limits=limits)
    return httpx.AsyncClient(
        limits=limits, transport=transport, timeout=90, headers={"Authorization": "Bearer key"}, trust_env=False
    )


async def call_all(work, client):
    rows, answers = iter(work.rows()), {}
    async with client:

        async def caller():
            for row in rows:
                response = await client.post(work.endpoint, json=body(row["text"]))
                answers[row["id"]] = json.loads(response.json()["choices"][0]["message"]["content"])

        await asyncio.gather(*(caller() for _ in range(work.concurrency)))
    return answers


asyncio.run(main())
