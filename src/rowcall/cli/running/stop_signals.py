"""What Ctrl+C, SIGTERM and SIGHUP do to a run."""

from __future__ import annotations

import asyncio
import signal

from rowcall.cli.running.run_messages import INTERRUPTED, stopping_text
from rowcall.progress import ProgressDisplay
from rowcall.run.pipeline import Pipeline


def handle_stop_signals(pipeline: Pipeline, progress: ProgressDisplay) -> list[str]:
    """Install the signal handlers of a run.

    The first Ctrl+C waits for the calls in flight, the second drops them, the third leaves at once; so do SIGTERM and
    SIGHUP. While no call can be in flight (before the store is open, and while the export is written) the first one
    leaves at once. SIGHUP is left alone if it is ignored already, as under ``nohup``.

    Returns:
        The reasons of the signals so far; the list grows with each signal.
    """
    loop, run = asyncio.get_running_loop(), asyncio.current_task()
    received: list[str] = []

    def stop(reason: str) -> None:
        received.append(reason)
        if run and (len(received) > 2 or not pipeline.working):
            progress.say(INTERRUPTED)
            run.cancel()
            return
        if len(received) > 1:
            pipeline.drop()
            return
        progress.say(stopping_text(pipeline.view.in_flight, pipeline.config.stop.grace))
        pipeline.stop(reason)

    loop.add_signal_handler(signal.SIGINT, stop, "interrupted")
    loop.add_signal_handler(signal.SIGTERM, stop, "terminated")
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop, "hung_up")
    return received
