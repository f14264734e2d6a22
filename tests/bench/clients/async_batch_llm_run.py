"""async-batch-llm as its documents have it: an OpenAI model, its SQLite store with durability full."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from pathlib import Path

from async_batch_llm import (
    ArtifactIdentity,
    ProcessorConfig,
    SqliteArtifactStore,
    SqliteDurability,
    llm,
    process_prompts,
)
from meter import PROMPT, Meter, Work

logging.disable(logging.WARNING)


async def main():
    work = Work(sys.argv)
    strategy = llm(
        "openai-compatible:m",
        base_url=work.url,
        api_key="key",
        system_instruction=PROMPT,
        max_connections=work.concurrency,
    )
    with tempfile.TemporaryDirectory(dir=work.input.parent) as folder:
        store = SqliteArtifactStore(
            Path(folder) / "bench.db",
            identity=ArtifactIdentity(provider="bench", model="m"),
            durability=SqliteDurability.FULL,
        )
        with Meter() as meter:
            prompts = [(row["id"], row["text"]) for row in work.rows()]
            batch = await process_prompts(
                strategy, prompts, config=ProcessorConfig(concurrency=work.concurrency), artifact_store=store
            )
            answers = [json.loads(result.output) for result in batch.results if result.success]
        meter.report(len(answers))


asyncio.run(main())
