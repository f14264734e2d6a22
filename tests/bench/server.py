"""The fastest API that asyncio can serve: every request gets the same bytes after a delay; nothing of it is parsed.

Usage: python server.py DELAY_SECONDS; prints its port. ``GET /`` answers with the CPU seconds it has used so far and
the monotonic time of the first call since the last such question.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
import time

REPLY = {
    "id": "chatcmpl-bench",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": '{"label": "positive", "score": 0.93}', "refusal": None},
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 57,
        "completion_tokens": 11,
        "total_tokens": 68,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    },
}

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req-bench\r\nContent-Length: %d\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def response(document):
    body = json.dumps(document).encode()
    return _HEAD % len(body) + body


class Protocol(asyncio.Protocol):
    """One connection."""

    delay = 0.0
    first = None
    answer = response(REPLY)

    def connection_made(self, transport):
        self.transport = transport
        self.later = asyncio.get_running_loop().call_later
        self.received = b""

    def data_received(self, data):
        self.received += data
        while (end := self.received.find(b"\r\n\r\n") + 4) >= 4:
            found = _LENGTH.search(self.received, 0, end)
            end += int(found[1]) if found else 0
            if len(self.received) < end:
                return
            request, self.received = self.received, self.received[end:]
            self.reply(request)

    def reply(self, request):
        if request.startswith(b"GET / "):
            self.transport.write(self.standing())
            return
        Protocol.first = Protocol.first or time.monotonic()
        if self.delay:
            self.later(self.delay, self.transport.write, self.answer)
        else:
            self.transport.write(self.answer)

    def standing(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        first, Protocol.first = Protocol.first, None
        return response({"cpu": used.ru_utime + used.ru_stime, "first": first})


async def serve(delay):
    Protocol.delay = delay
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
