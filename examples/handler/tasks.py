"""The function that rowcall runs for each record: it gets the row and a ``call``, and returns the answer.

``call`` works like an httpx client, but keeps to the limits and counts every request. If a reply is not an answer, it
raises, and rowcall decides whether to wait, to try again or to stop; there is nothing to catch here. To decide
yourself, raise ``rowcall.Fail("why")`` to fail the record, ``rowcall.RetryLater(30)`` to try it again after 30 s, or
``rowcall.StopRun("why")`` to stop the run.
"""

import re

_WORD = re.compile(r"[a-z]+")


async def judge(row, call):
    """Return the sentiment of a sentence. If it is neutral, also look up its longest word."""
    words = _WORD.findall(row["text"].lower())
    if not words:
        return {"label": "neutral", "score": 0.0, "because": None}  # no call at all
    judged = (await call.get("/sentiment", params={"text": row["text"]})).json()
    if judged["label"] != "neutral":
        return {"label": judged["label"], "score": judged["score"], "because": None}
    word = max(words, key=len)
    entry = await call.get(f"/words/{word}")
    known = entry.status_code == 200 and "valence" in entry.json()
    return {"label": "neutral", "score": judged["score"], "because": word if known else None}
