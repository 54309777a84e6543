"""The graph's layout and its folding of modules, run as the page runs them, by Node.js."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

from openneutron.report.html.page import asset

WIDTH, HEIGHT = 208, 44
NEAR = 1e-6  # sums of floats


def run(code: str, *values: Any) -> Any:
    """What the code returns, with the scripts' functions and `given` in scope."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    scripts = "\n".join(asset(name) for name in ("graph_layout.js", "graph_modules.js"))
    text = f"const given = JSON.parse(require('fs').readFileSync(0));\n{scripts}\n"
    text += f"process.stdout.write(JSON.stringify((() => {{ {code} }})()));"
    done = subprocess.run([node, "-e", text], input=json.dumps(values), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def graphs() -> list[list[list[int]]]:
    """Random graphs of up to 14 boxes, each with the earlier boxes that it reads."""
    chance = random.Random(5)
    return [
        [sorted(chance.sample(range(box), chance.randint(0, min(box, 3)))) for box in range(chance.randint(0, 14))]
        for _ in range(300)
    ]


def test_boxes_never_overlap_and_edges_point_down() -> None:
    for inputs, found in zip(graphs(), run("return given[0].map(layoutGraph)", graphs()), strict=True):
        boxes = found["boxes"]
        for a, (ax, ay) in enumerate(boxes):
            assert -NEAR <= ax <= found["width"] - WIDTH + NEAR and 0 <= ay <= found["height"] - HEIGHT + NEAR
            assert all(abs(ax - bx) >= WIDTH - NEAR or abs(ay - by) >= HEIGHT for bx, by in boxes[:a])
        assert all(boxes[maker][1] < boxes[reader][1] for maker, reader, _ in found["edges"])
        assert len(found["edges"]) == sum(map(len, inputs))


def test_a_chain_with_a_skip_is_straight_and_the_skip_goes_around() -> None:
    found = run("return layoutGraph(given[0])", [[], [0], [1], [2, 0]])
    assert len({x for x, _ in found["boxes"]}) == 1
    assert next(path for maker, reader, path in found["edges"] if (maker, reader) == (0, 3)).count("C") == 2


def test_a_box_that_reads_nothing_sits_above_its_reader() -> None:
    found = run("return layoutGraph(given[0])", [[], [], [0], [2], [3], [4, 1]])
    assert found["boxes"][1][1] == found["boxes"][4][1]


ITEMS = """return given[0].map(([boxes, open]) => {
    const root = moduleTree(boxes);
    const keys = open === null ? firstOpen(root) : new Set(open);
    const {items, inputs} = drawnItems(boxes, root, keys);
    return {titles: items.map((one) => one.group?.title ?? null), members: items.map((one) => one.members), inputs};
})"""


def test_folded_modules_hold_each_box_once_and_make_no_circle() -> None:
    """Whatever belongs to whatever module: an item reads only items before it."""
    chance = random.Random(7)
    cases = []
    for inputs in graphs():
        paths = [chance.choice(([], ["a"], ["a", "b"], ["a", "c"], ["d"])) for _ in inputs]
        cases.append(
            (
                [{"path": path, "inputs": read} for path, read in zip(paths, inputs, strict=True)],
                chance.choice(([], ["a"])),
            )
        )
    for (boxes, _), found in zip(cases, run(ITEMS, cases), strict=True):
        assert sorted(one for item in found["members"] for one in item) == list(range(len(boxes)))
        owner = {one: at for at, item in enumerate(found["members"]) for one in item}
        for at, (members, inputs) in enumerate(zip(found["members"], found["inputs"], strict=True)):
            assert all(one < at for one in inputs)
            assert set(inputs) == {owner[one] for box in members for one in boxes[box]["inputs"]} - {at}


def test_a_module_whose_values_leave_and_come_back_is_two_boxes() -> None:
    boxes = [{"path": ["a"], "inputs": []}, {"path": ["x"], "inputs": [0]}, {"path": ["a"], "inputs": [1]}]
    (found,) = run(ITEMS, [(boxes, [])])
    assert (found["titles"], found["members"], found["inputs"]) == (["a", None, "a"], [[0], [1], [2]], [[], [0], [1]])


def test_a_first_view_has_few_boxes_and_single_modules_are_merged() -> None:
    layers = [["net", "layer", str(at // 20), "fc"] for at in range(240)]
    boxes = [{"path": path, "inputs": [at - 1] if at else []} for at, path in enumerate(layers)]
    (found,) = run(ITEMS, [(boxes, None)])
    assert found["titles"] == [f"{at}.fc" for at in range(12)] and found["inputs"] == [[], *([at] for at in range(11))]
    (small,) = run(ITEMS, [(boxes[:30], None)])
    assert small["titles"] == [None] * 30
