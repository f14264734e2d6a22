"""A bare loop over aiohttp, without a store: what could be had at most."""

from __future__ import annotations

import asyncio
import json
import sys

import aiohttp
from meter import Meter, Work, body


async def main():
    work = Work(sys.argv)
    with Meter() as meter:
        answers = await call_all(work)
    meter.report(len(answers))


async def call_all(work):
    rows, answers = iter(work.rows()), {}
    connector = aiohttp.TCPConnector(limit=work.concurrency)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": "Bearer key"}) as session:

        async def caller():
            for row in rows:
                async with session.post(work.endpoint, json=body(row["text"])) as response:
                    reply = await response.json()
                answers[row["id"]] = json.loads(reply["choices"][0]["message"]["content"])

        await asyncio.gather(*(caller() for _ in range(work.concurrency)))
    return answers


asyncio.run(main())
