"""Cut the head of a detector: the model ends where top-k and non-maximum suppression begin.

How many boxes those keep depends on the data, and no NPU has kernels for them; the application selects boxes from what the
model gives now.

Before:  boxes, scores = …; kept = NonMaxSuppression(boxes, scores); output Gather(boxes, kept)
After:   outputs boxes and scores
"""

from __future__ import annotations

from typing import Any, Final

SELECTIONS: Final = frozenset({"NonMaxSuppression", "TopK", "EfficientNMS_TRT", "BatchedNMS_TRT"})
UNBOUNDED: Final = "NonMaxSuppression"  # with a number of results that is only known at run time


def has_suppression(model: Any) -> bool:
    """Return whether a model suppresses boxes by data that is not constant."""
    constant = {one.name for one in model.graph.initializer}
    return any(node.op_type == UNBOUNDED and not set(node.input[:2]) <= constant for node in model.graph.node)


def cut_head(model: Any) -> tuple[str, ...]:
    """Cut in place; returns the names of the new outputs, () if there is nothing to cut.

    Outputs that do not depend on a selection stay; the others are replaced by the tensors that go into what was cut.
    """
    from onnx import helper

    graph = model.graph
    gone: set[str] = set()
    kept, cut = [], []
    for node in graph.node:  # in order of execution
        if node.op_type in SELECTIONS or gone.intersection(node.input):
            gone.update(filter(None, node.output))
            cut.append(node)
        else:
            kept.append(node)
    if not cut:
        return ()
    made = {name for node in kept for name in node.output if name}
    computed = _computed_tensors(kept, {one.name for one in graph.input} - {one.name for one in graph.initializer})
    into = [name for node in cut for name in node.input if name in made and name in computed]
    stays = [one.name for one in graph.output if one.name not in gone]
    known = {one.name: one for one in (*graph.value_info, *graph.output)}
    names = tuple(dict.fromkeys((*stays, *into)))
    if not names:  # it is all head
        return ()
    infos = [known.get(name) or helper.make_empty_tensor_value_info(name) for name in names]
    infos = [type(one).FromString(one.SerializeToString()) for one in infos]
    del graph.node[:], graph.output[:]
    graph.node.extend(kept)
    graph.output.extend(infos)
    _drop_unread(graph)
    return names


def sentence(names: tuple[str, ...]) -> str:
    """Return what a report says about a cut."""
    return (
        "the head is cut where top-k and non-maximum suppression begin: "
        f"outputs are {', '.join(names)}; choose boxes among them in the application"
    )


def hints(model: Any) -> tuple[str, ...]:
    """Return what to do about a model that chooses by top-k and is not cut there; nothing of others."""
    chosen = next((node for node in model.graph.node if node.op_type == "TopK"), None)
    if chosen is None:
        return ()
    where = f"node `{chosen.name}`" if chosen.name else f"output `{chosen.output[0]}`"
    return (
        f"top-k ({where}) sorts on the CPU, and what follows has another order where two values are close; of a detector, "
        "--cut-head leaves that to the application",
    )


def _computed_tensors(nodes: list[Any], inputs: set[str]) -> set[str]:
    """Return the tensors that depend on the model's inputs."""
    found = set(inputs)
    for node in nodes:
        if found.intersection(node.input):
            found.update(node.output)
    return found


def _drop_unread(graph: Any) -> None:
    """Remove nodes whose results nothing reads any more, and their initializers."""
    needed = {one.name for one in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    nodes = [type(node).FromString(node.SerializeToString()) for node in reversed(kept)]
    constants = [type(one).FromString(one.SerializeToString()) for one in graph.initializer if one.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)
