"""The config that a store keeps, with its files, for who has nothing but the store."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rowcall.cli.shared.common import only_kind
from rowcall.cli.shared.recipe_trust import Trust
from rowcall.config import Config, load
from rowcall.model.errors import NothingYet, RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.run.recipe import Recipe
from rowcall.store.open_at import open_reader


def kept_config(
    stack: ExitStack,
    place: StoreLocation,
    recipe: Recipe,
    *,
    trust: Trust,
    settings: Mapping[str, Any],
    env_file: Path | None = None,
) -> Config:
    """The config of a recipe, whose files stand in a folder that goes with ``stack``; its store is at ``place``.

    Args:
        stack: what removes the folder.
        place: where the recipe came from.
        recipe: with its files.
        trust: what the recipe may use of this machine.
        settings: what goes before the config's own.
        env_file: variables that the environment does not have; None: those of ``.env`` in this folder.

    Raises:
        ConfigError: the recipe wants more than it may use.
    """
    trust.check(recipe, place)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-work-")))
    here = {"store.path": place.url or str(place.path and place.path.absolute())}
    file, env_file = recipe.write(folder), env_file or Path.cwd() / ".env"
    return load(file, overrides={**settings, **here}, env_file=env_file, shown=f"the config that {place} keeps")


async def kept_recipe(place: StoreLocation, wanted: str | None) -> Recipe:
    """How the calls of a kind are made, with all files.

    Raises:
        NothingYet: the store does not say.
        RowcallError: they could not travel.
    """
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), wanted, place)
        kept = await reader.recipe(kind)
    if kept is None:
        what = f"{place}: nothing says how the calls of {kind} are made"
        raise NothingYet(what, remedy="rowcall enqueue keeps it there; or name the config in the place of the store")
    recipe = Recipe.of(kept)
    if recipe.withheld:
        what = f"{place}: the config of {kind} stayed where it was: {recipe.withheld}"
        raise RowcallError(what, remedy="mend that and enqueue again; or name the config in the place of the store")
    return recipe
