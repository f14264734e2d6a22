"""The config that a store keeps, with its files: for workers that are given nothing but the store."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import read_job
from rowcall.cli.shared.recipe_trust import Trust
from rowcall.config import Config, load
from rowcall.model.errors import NothingYet, RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.run.recipe import Recipe


def load_stored_config(
    stack: ExitStack,
    store: StoreLocation,
    recipe: Recipe,
    *,
    trust: Trust,
    settings: Mapping[str, Any],
    env_file: Path | None = None,
) -> Config:
    """Load the config of a recipe; its files are written to a temporary folder, and its store is ``store``.

    Args:
        stack: removes the temporary folder when it closes.
        store: where the recipe came from.
        recipe: with its files.
        trust: what the recipe may use of this machine.
        settings: what overrides the settings of the config.
        env_file: variables that the environment does not have; None means ``.env`` in the current folder.

    Raises:
        ConfigError: the recipe needs more than it may use.
    """
    trust.check(recipe, store)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-work-")))
    own_store = {"store.path": store.url or str(store.path and store.path.absolute())}
    file, env_file = recipe.write(folder), env_file or Path.cwd() / ".env"
    return load(file, overrides={**settings, **own_store}, env_file=env_file, shown=f"the config stored in {store}")


async def read_recipe(store: StoreLocation, wanted: str | None) -> Recipe:
    """Read how the calls of a kind are made, with all files.

    Raises:
        NothingYet: the store does not hold it.
        RowcallError: it could not be stored.
    """
    async with read_job(JobAddress(store=store, name=wanted)) as (reader, kind):
        stored = await reader.recipe(kind)
    if stored is None:
        what = f"{store}: the config of {kind} is not in the store"
        raise NothingYet(what, remedy="rowcall enqueue puts it there; or name the config instead of --store")
    recipe = Recipe.of(stored)
    if recipe.withheld:
        what = f"{store}: the config of {kind} could not be put into the store: {recipe.withheld}"
        raise RowcallError(what, remedy="fix that and run rowcall enqueue again; or name the config instead of --store")
    return recipe
