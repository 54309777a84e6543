"""The README of a project: the commands of its platform, the model's interface, its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openneutron.machine.runtime_memory import STACK_BYTES
from openneutron.project.content import Content
from openneutron.project.sizes import CODE_BYTES
from openneutron.project.templates import fill
from openneutron.terminal.escapes import comment


def readme(template: str, content: Content, files: Sequence[tuple[str, str]], **blanks: Any) -> str:
    """Return the README that the template of a platform begins; `files` are that platform's folders, and what they hold."""
    common = {
        "inputs": [{**row, "name": comment(row["name"])} for row in content.rows(outputs=False)],
        "outputs": [{**row, "name": comment(row["name"])} for row in content.rows(outputs=True)],
        "around": " and ".join(dict.fromkeys(content.model.around)),
        "methods": content.model.methods,
        "stateful": bool(content.program.states),
        "sizes": content.sizes,
        "stack_bytes": STACK_BYTES,
        "code_bytes": CODE_BYTES,
        "files": files,
        "reference": content.reference,
        "command": content.command,
    }
    return fill(template, **(common | blanks))
