"""A language model on the NPU: a decoder with its cache in one graph reads prompts in chunks and writes stories.

    python examples/story.py

The decoder has the shape of Llama, 293,000 parameters, and learned stories of a small grammar (`training/stories.py`). It is
compiled with activations of 16 bits and weights of 8, with one story as calibration data. Its second method takes eight tokens
of a prompt in one call and shares weights and cache with the first.
"""

from __future__ import annotations

import sys

import torch

import openneutron as on
from openneutron.zoo.story_decoder import vocabulary

PROMPTS = ("Once upon a time", "There once was a brave boy. His name was")
TOKENS = 100
CHUNK = 8  # tokens of a prompt in one call


def main() -> int:
    """Compile the decoder, save it as story.pte, and write a story behind each prompt."""
    model = on.zoo.load("story_decoder")
    one_story = model.calibration[:256]
    prompts = {"prefill": (torch.zeros(1, CHUNK, dtype=torch.int64), torch.arange(CHUNK))}
    program = on.compile(
        model.model, model.example_inputs, calibration=one_story, activations="int16", methods=prompts,
        constant_methods=model.constants, name=model.name,
    )  # fmt: skip
    program.save("story.pte")
    left = [node.operator for node in program.verdicts if not node.delegated]
    count, graphs = len(program.verdicts) - len(left), program.report.totals.neutron_graphs
    print(f"{count} operators on the NPU in {graphs} graph; border: {left}")
    for prompt in PROMPTS:
        text = on.generate(program, prompt, tokenizer=vocabulary(), tokens=TOKENS, temperature=0.7, top_p=0.9, seed=1)
        print(f"\n{prompt}", end="")
        for piece in text:
            print(piece, end="", flush=True)
        print(f"\n({len(text.tokens)} tokens; {text.ended})")
    whole = program.report.whole
    print(f"\nestimated for {program.report.target}, open schedule: {1e3 / whole.milliseconds:,.0f} tokens/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
