"""Clients of the mock API, over real sockets."""

from __future__ import annotations

import aiohttp
import pytest


@pytest.fixture
async def client():
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session
