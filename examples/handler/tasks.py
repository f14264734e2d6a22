"""A function for each record: it gets the row and a ``call`` to the API, and what it returns is the answer.

``call`` is like an httpx client, but paced, counted and classed: a reply that is no answer raises, and rowcall knows
whether to wait, to try again or to stop. There is nothing to catch here. ``raise rowcall.Fail("why")`` gives a record
up, ``rowcall.RetryLater(30)`` puts it off, ``rowcall.StopRun("why")`` stops the run.
"""

import re

_WORD = re.compile(r"[a-z]+")


async def judge(row, call):
    """The sentiment of a sentence; where it is neutral, whether its longest word would have said otherwise."""
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
