"""Train the story decoder on stories of `stories.py` and write what the zoo ships: weights, vocabulary and token sequences.

    python training/train_story_decoder.py      # the committed weights; four minutes on one core

Training never sees the test stories: they are of another seed. The perplexity printed is that of the file written, read back.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch
from stories import stories
from torch.nn import functional
from weights import WEIGHTS, ZOO, save_arrays, save_weights

from openneutron.language.vocabulary import BOS, EOS, Vocabulary, train_vocabulary
from openneutron.zoo._store import load_weights
from openneutron.zoo.story_decoder import Shape, StoryDecoder

TRAIN_SEED, CALIBRATION_SEED, TEST_SEED = 1, 2, 3
BATCH = 16
PEAK_RATE = 4e-3  # 8e-3 is unstable in the first hundred steps
CALIBRATION_ROWS, TEST_ROWS = 4, 16


def rows(vocabulary: Vocabulary, seed: int, length: int) -> Iterator[list[int]]:
    """Yield rows of tokens: each begins with a story, and with further ones where the first is shorter."""
    source = stories(seed)
    while True:
        row: list[int] = []
        while len(row) < length:
            row += [BOS, *vocabulary.encode(next(source)), EOS]
        yield row[:length]


def batches(vocabulary: Vocabulary, seed: int, shape: Shape) -> Iterator[torch.Tensor]:
    """Yield batches of rows; a row has one token more than the context, to predict the last one."""
    source = rows(vocabulary, seed, shape.context + 1)
    while True:
        yield torch.tensor(list(itertools.islice(source, BATCH)))


def loss_of(model: StoryDecoder, batch: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of the next tokens."""
    logits = model.without_cache(batch[:, :-1])
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1))


def train(model: StoryDecoder, source: Iterator[torch.Tensor], steps: int, seconds: float) -> None:
    """Train in place; the rate falls to zero at the last step, or earlier where the seconds are used up."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.95), weight_decay=0.05)
    began = time.process_time()
    for step in range(steps):
        used = max(step / steps, (time.process_time() - began) / seconds)
        if used >= 1:
            break
        rate = PEAK_RATE * min(step / 50, (1 + math.cos(math.pi * used)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, next(source))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(
                f"step {step}: perplexity {math.exp(loss.item()):.3f}, {time.process_time() - began:.0f} s", flush=True
            )


def main() -> int:
    """Train and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end the schedule after so much processor time")
    arguments = parser.parse_args()
    torch.manual_seed(TRAIN_SEED)
    torch.set_num_threads(1)
    shape = Shape()
    vocabulary = train_vocabulary(itertools.islice(stories(TRAIN_SEED), 1000), shape.vocabulary)
    (ZOO / "data" / "story_vocabulary.json").write_text(vocabulary.to_json())
    parts = {
        name: np.array(list(itertools.islice(rows(vocabulary, seed, shape.context), count)), np.uint16)
        for name, seed, count in (("calibration", CALIBRATION_SEED, CALIBRATION_ROWS), ("test", TEST_SEED, TEST_ROWS))
    }
    save_arrays(ZOO / "data" / "story_tokens.npz", parts)
    model = StoryDecoder(shape)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.06)
    train(model, batches(vocabulary, TRAIN_SEED, shape), arguments.steps, arguments.seconds)
    save_weights(model, WEIGHTS / "story_decoder.npz")
    stored = StoryDecoder(shape).eval()
    load_weights(stored, WEIGHTS / "story_decoder.npz")
    with torch.no_grad():
        loss = loss_of(stored, torch.from_numpy(parts["test"].astype(np.int64)))
    print(f"perplexity on {TEST_ROWS} test rows: {math.exp(loss.item()):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
