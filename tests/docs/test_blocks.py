"""The runner of documentation blocks fails where a page is wrong."""

from __future__ import annotations

import textwrap

import pytest

from tests.docs.blocks import Block, Session, blocks_of, commands_of, first_missing

PAGE = textwrap.dedent("""\
    # Title

    <!-- run
    x = 20
    -->

    ```python
    y = x + 1
    ```

    - a list

      ```console
      $ openneutron zoo
      name …
      ```

    ```text
    $ never run
    ```
    """)


def test_blocks_are_found_with_their_lines() -> None:
    found = blocks_of(PAGE)
    assert [(b.language, b.line) for b in found] == [("python", 4), ("python", 8), ("console", 14), ("text", 19)]
    assert found[2].text == "$ openneutron zoo\nname …"


def test_blocks_of_a_page_share_their_names() -> None:
    session = Session("page.md")
    for block in blocks_of(PAGE)[:2]:
        session.run(block)
    assert session.names["y"] == 21


def test_an_error_in_python_shows_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        Session("page.md").run(Block("python", "x = 1\nx / 0", 40))
    assert caught.traceback[-1].lineno + 1 == 41


WRONG = {
    "an exit code": "$ openneutron ops NO_SUCH_OPERATOR",
    "an exit code that is not announced": "$ openneutron zoo # exit 2",
    "output that is not printed": "$ openneutron zoo\nno such model",
    "a make target": "$ make nonsense",
    "a program nobody tests": "$ frobnicate",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_console_block_is_found(name: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:7"):
        Session("page.md").run(Block("console", WRONG[name], 7))


def test_announced_exit_codes_and_shortened_output_pass() -> None:
    text = "$ openneutron ops NO_SUCH_OPERATOR # exit 2\n$ openneutron targets\n imx95 … 1,024 KiB\n$ make test"
    Session("page.md").run(Block("console", text, 1))


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(AssertionError, match="neither run nor pictures"):
        Session("page.md").run(Block("bash", "ls", 1))


def test_a_backslash_joins_lines() -> None:
    assert commands_of(Block("console", "$ a \\\n  b\nout", 3)) == [("a b", ["out"], 3)]


def test_output_must_come_in_order() -> None:
    assert first_missing(["a", "b"], "a b") is None
    assert first_missing(["b", "a"], "a b") == "a"
    assert first_missing(["cycles … ms"], "cycles 12,\n 0.5 ms") is None
