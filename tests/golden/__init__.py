"""Texts that are compared as a whole, so that a change of the code that is emitted is seen and meant."""

import os
import pathlib

FOLDER = pathlib.Path(__file__).parent


def check_golden(name: str, text: str) -> None:
    """Compare CUDA text with a file of this folder; of what comes before its first function nothing is ours."""
    text, path = text[text.index('extern "C"') :], FOLDER / name
    if os.environ.get("RAMMER_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} has changed; set RAMMER_UPDATE_GOLDEN=1 if that is meant"
