"""Stories of a small grammar: the text that the zoo's decoder learns, the same from the same seed.

A story has a hero, a friend, a thing and a place; later sentences return to them, so that a model has to look back.

Example:
    >>> story(random.Random(1)).startswith("Once")
    True
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_GIRLS: Final = ["Anna", "Clara", "Emma", "Ida", "Lena", "Lily", "Maja", "Mia", "Nora", "Rosa", "Tina", "Vera"]
_BOYS: Final = ["Ben", "Carl", "Emil", "Finn", "Jan", "Karl", "Leo", "Max", "Noah", "Otto", "Paul", "Tom"]
_ANIMALS: Final = [
    "bear",
    "bird",
    "cat",
    "dog",
    "duck",
    "fox",
    "frog",
    "goat",
    "hen",
    "horse",
    "mouse",
    "owl",
    "pig",
    "rabbit",
    "sheep",
    "turtle",
]
_PLACES: Final = ["garden", "forest", "park", "barn", "meadow", "old house", "valley", "big field"]
_ADJECTIVES: Final = ["little", "big", "red", "blue", "green", "shiny", "old", "new", "soft", "round", "yellow", "tiny"]
_THINGS: Final = [
    "ball",
    "boat",
    "book",
    "box",
    "cake",
    "cup",
    "drum",
    "hat",
    "kite",
    "lamp",
    "ring",
    "shell",
    "stone",
    "toy",
]
_WEATHER: Final = [
    "The sun was warm",
    "It was a cold day",
    "It had rained all night",
    "The sky was blue",
    "The wind was strong",
]
_FOODS: Final = ["an apple", "some bread", "a pear", "some soup", "a cookie", "some milk", "a carrot"]

_OPENINGS: Final = (
    "Once upon a time there was a {kind} named {hero}. {He} liked to play in the {place}.",
    "One day {hero} went to the {place}. {weather}, and {he} was happy.",
    "{hero} was a {nature} {kind} who lived near the {place}. Every day {he} played with a {friend}.",
    "There once was a {nature} {kind}. {His} name was {hero}. {He} had a {thing} that {he} loved very much.",
)  # fmt: skip
_NATURES: Final = ["kind", "brave", "shy", "funny", "clever", "curious"]

_FINDS: Final = (
    'In the {place} {he} found a {thing}. "What a nice {noun}!" said {hero}.',
    '{hero} saw a {thing} near a tree. "Whose {noun} is this?" {he} asked.',
    "{He} looked under a bush and saw a {thing}. It was the best {noun} {he} had ever seen.",
)
_TROUBLES: Final = (
    (
        'Then a {friend} came and took the {noun}. "Please give it back," said {hero}. The {friend} said no and '
        'ran away. {hero} was sad and began to cry.'
    ),
    "But the {noun} fell into the water. {hero} could not reach it. {He} looked at the {friend} and asked for help.",
    (
        'A {friend} sat there and looked sad. "Why are you sad?" asked {hero}. "I lost my {noun}," said the '
        '{friend}. "I can help you," said {hero}.'
    ),
    (
        "Suddenly the wind blew and the {noun} was gone. {hero} looked for it everywhere. {He} asked the {friend},"
        " but the {friend} had not seen the {noun}."
    ),
    (
        'The {friend} was hungry. {hero} had {food}. "Do you want {food}?" {he} asked. "Yes, please," said the '
        '{friend}, and they ate it together.'
    ),
)  # fmt: skip
_HELPS: Final = (
    "The {friend} jumped up and got the {noun}. {hero} was so happy that {he} gave the {friend} a big hug.",
    (
        'After a while the {friend} came back. "I am sorry," it said and gave the {noun} to {hero}. {hero} smiled.'
        ' "We can share it," {he} said.'
    ),
    "They looked in the {place} together. At last they found the {noun} behind a big stone. They were very glad.",
    "{His} {parent} heard it and came. {Parent} knew what to do. Soon {hero} had the {noun} in {his} hands again.",
)
_ENDINGS: Final = (
    "From that day on {hero} and the {friend} were best friends.",
    "{hero} went home and told {his} {parent} about the {friend} and the {thing}. Then {he} fell asleep.",
    "They played with the {noun} until the sun went down. The end.",
    "And {hero} learned that it is good to be {nature} and to help a friend.",
    "{hero} put the {noun} in a box and was happy ever after.",
)

# Sentences of free words: each is chosen by itself, so that what comes next is never certain.
_SCENES: Final = (
    "The {adjective} {animal} {moved} {how} {where} the {adjective} {object}.",
    "{hero} {looked} at a {adjective} {object} and {felt} {how}.",
    "A {animal} and a {animal} {moved} {where} the {object}.",
    "{He} {looked} {where} the {object} and saw a {adjective} {animal}.",
    "The {friend} {moved} {where} a {object}, and {hero} {moved} {how}.",
    "{His} {parent} had {food} and a {adjective} {object}.",
)
_FREE: Final[Mapping[str, Sequence[str]]] = {
    "adjective": _ADJECTIVES,
    "animal": _ANIMALS,
    "food": _FOODS,
    "object": [*_THINGS, "chair", "door", "flower", "leaf", "star", "table", "tree", "wall"],
    "moved": [
        "came",
        "danced",
        "flew",
        "hopped",
        "hurried",
        "jumped",
        "ran",
        "rolled",
        "sang",
        "sat",
        "slept",
        "walked",
    ],
    "looked": ["laughed", "looked", "nodded", "pointed", "smiled", "stared"],
    "felt": ["called", "clapped", "sang", "waited", "waved", "whispered"],
    "how": ["alone", "away", "fast", "gently", "loudly", "quickly", "quietly", "slowly", "softly", "together"],
    "where": ["above", "around", "before", "behind", "beside", "near", "over", "under"],
}


def story(source: random.Random) -> str:
    """Return one story."""
    words = _words(source)
    parts = [_OPENINGS, _FINDS, _TROUBLES, _HELPS, _ENDINGS]
    if source.random() < 0.3:
        parts.insert(4, _TROUBLES)
        parts.insert(5, _HELPS)
    sentences = [_pick(source, choices).format_map(words) for choices in parts]
    for _ in range(source.randrange(3, 6)):
        sentences.insert(source.randrange(1, len(sentences)), _scene(source, words))
    return re.sub(r"\ba (?=[aeiou])", "an ", " ".join(sentences))


def stories(seed: int) -> Iterator[str]:
    """Yield stories without end; those of one seed are always the same."""
    source = random.Random(seed)  # nosec B311
    while True:
        yield story(source)


def _scene(source: random.Random, words: Mapping[str, str]) -> str:
    def fill(field: re.Match[str]) -> str:
        return _pick(source, _FREE[field[1]]) if field[1] in _FREE else words[field[1]]

    return re.sub(r"{(\w+)}", fill, _pick(source, _SCENES))


def _words(source: random.Random) -> Mapping[str, str]:
    girl = source.random() < 0.5
    noun = _pick(source, _THINGS)
    he, his = ("she", "her") if girl else ("he", "his")
    parent = _pick(source, ["mom", "dad"])
    return {
        "hero": _pick(source, _GIRLS if girl else _BOYS), "kind": "girl" if girl else "boy",
        "he": he, "He": he.capitalize(), "his": his, "His": his.capitalize(),
        "parent": parent, "Parent": parent.capitalize(), "friend": _pick(source, _ANIMALS),
        "place": _pick(source, _PLACES), "noun": noun, "thing": f"{_pick(source, _ADJECTIVES)} {noun}",
        "weather": _pick(source, _WEATHER), "food": _pick(source, _FOODS), "nature": _pick(source, _NATURES),
    }  # fmt: skip


def _pick(source: random.Random, choices: Sequence[str]) -> str:
    return choices[source.randrange(len(choices))]
