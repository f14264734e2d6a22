"""Files to read."""

import pytest

from rowcall.sources import open_source


@pytest.fixture
def source(tmp_path):
    """Write a file and open it as a source; anything else is an option of ``open_source``."""

    def make(name, content, /, **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_source(file, **options)

    return make
