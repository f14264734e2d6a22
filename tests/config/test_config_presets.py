"""Where a preset's calls go."""

import pytest

from rowcall.config import load
from rowcall.config.preset_defaults import PRESET_DEFAULTS

TEXT = """\
[input]
path = "rows.csv"
[api]
preset = "{}"
base_url = "https://proxy.example.com"
[request]
path = "/elsewhere"
[request.body]
model = "m"
"""


@pytest.fixture
def loaded(tmp_path):
    def loaded(text):
        (tmp_path / "config.toml").write_text(text)
        return load(tmp_path / "config.toml")

    return loaded


@pytest.mark.parametrize(
    "preset", [name for name, place in PRESET_DEFAULTS.items() if place.base_url and not place.needs]
)
def test_a_preset_knows_where_it_is(loaded, preset):
    """What the config does not say the preset fills in."""
    config = loaded(f'[input]\npath = "a.csv"\n[api]\npreset = "{preset}"\n[request.body]\nmodel = "m"\n')
    assert (config.api.base_url, config.request.path) == (
        PRESET_DEFAULTS[preset].base_url,
        PRESET_DEFAULTS[preset].path,
    )


@pytest.mark.parametrize("preset", [name for name in PRESET_DEFAULTS if name != "openai-batch"])
def test_the_config_goes_before_its_preset(loaded, preset):
    """A base URL and a path that are written are what counts, whatever the body holds then."""
    config = loaded(TEXT.format(preset))
    assert (config.api.base_url, config.request.path) == ("https://proxy.example.com", "/elsewhere")
