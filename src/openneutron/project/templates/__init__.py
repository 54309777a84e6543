"""The files that projects are made of: C sources as they are, and texts with blanks for jinja2."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def read(name: str) -> str:
    """Return a file as it is."""
    return (resources.files(__package__) / name).read_text("utf-8")


def fill(name: str, /, **blanks: Any) -> str:
    """Return a template with its blanks filled; a blank without a value is an error."""
    return environment().get_template(name).render(**blanks)


@cache
def environment() -> Environment:
    """Return the template environment of projects: plain text, nothing is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(read), autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip # nosec B701: no HTML
    made.filters["count"] = lambda value: f"{value:,}"
    made.filters["hex"] = lambda value: f"{value:#x}"
    return made
