"""Proves a compiled LiteRT file against its source: every output has the same bytes, whatever the inputs are.

Both models are evaluated with tags in place of values. Where an operator has a rule, the rule computes the tags of its outputs;
any other operator is an opaque function of its attributes and inputs. A NeutronGraph is replayed call by call; each call must
compute some rows of an operator of the source. The file is proved when each output has the same tags as the source's output.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from openneutron.certify import kernels
from openneutron.certify.border import check_same_model
from openneutron.certify.control import CONTROL, Control, Room, contents
from openneutron.certify.operators import RULES, Context
from openneutron.certify.operators.arity import takes_inputs
from openneutron.certify.read.graph_op import check_graph_op
from openneutron.certify.read.litert import Graph, Model, Operator, Tensor, is_plain, read_model
from openneutron.certify.read.microcode import Call, Loop, Program, State, decode, is_foreign
from openneutron.certify.refused import Refused
from openneutron.certify.replay import Machine
from openneutron.certify.shapes import check_shapes, has_declared_sizes
from openneutron.certify.tags import digest, value_of
from openneutron.certify.values import Values
from openneutron.certify.variables import Variable, assignments, first_contents
from openneutron.certify.world import World

_BLOCKS = 3  # microcode, weights, kernels: the last inputs of a NeutronGraph
_MOST_ASSIGNMENTS = 24  # of states to variables of equal size and contents
# Bytes of memory that a NeutronGraph may have for each byte of tensors and weights, and the bytes that any may have.
_ROOM, _LEAST_ROOM = 4, 1 << 20
_VARIABLES = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"})
_STATEFUL = frozenset({"WHILE", "IF", "CALL", "RANDOM_UNIFORM",
    "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"})  # fmt: skip


@dataclass(frozen=True)
class Proof:
    """The counts of a proof, and the computation that each call was matched with."""

    graphs: int
    calls: int
    copies: int
    outputs: int
    recognised: Hints = field(default_factory=dict, compare=False)


def prove(compiled: bytes, source: bytes, hints: Hints | None = None) -> Proof:
    """Prove a compiled .tflite against its source .tflite; raise `Refused` with the first place that is wrong.

    `hints` are the matches of an earlier proof; wrong ones cost time, nothing else.

    Example:
        >>> prove(Path("out.tflite").read_bytes(), Path("model.tflite").read_bytes()).calls
    """
    return _refuse_errors(lambda: _prove(compiled, source, hints))


def _refuse_errors(work: Callable[[], Proof]) -> Proof:
    try:
        return work()
    except Refused:
        raise
    except (LookupError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise Refused(f"the file makes no sense ({type(error).__name__}: {error})") from None


def _prove(compiled: bytes, source: bytes, hints: Hints | None) -> Proof:
    _load()
    models = read_model(compiled), _source(source)
    ours, theirs = (model.graphs for model in models)
    if not ours or not theirs:
        raise Refused("a model has no graph", 0)
    check_same_model(*models)
    world = World(size=sum(graph.size for graph in (*ours, *theirs)))
    wanted = Walk(world, theirs)
    try:
        outputs = wanted.outputs()
    except Refused as error:
        raise error.of("source") from None
    effects, world.effects = world.effects, []
    found = Walk(world, ours, wanted.variables, hints)
    _check_outputs(found, found.outputs(), outputs)
    _check_variables(found, wanted)
    if effects != world.effects:
        raise Refused("operators with effects are not those of the source")
    return found.proof()


def _source(data: bytes) -> Model:
    try:
        return read_model(data, archive=True)
    except Refused as error:
        raise error.of("source") from None


def _check_variables(found: Walk, wanted: Walk) -> None:
    """Refuse a file whose states and variables end a run with other contents than the source's variables."""
    for name, variable in wanted.variables.items():
        if name in found.claimed or variable.end is None:
            continue
        other = found.variables.get(name)
        if other is None or other.end != variable.end or other.initial != variable.initial:
            raise Refused(f"variable {_quote_name(name)} is not what the source makes of it")


def _quote_name(name: bytes) -> str:
    return repr(name.split(b"\0")[-1].decode(errors="replace"))


def _load() -> None:
    from openneutron.certify.operators import elements, moves, products, recurrent, unary  # noqa: F401

    kernels.load()


def _check_outputs(walk: Walk, found: list[array[int]], wanted: list[array[int]]) -> None:
    graph = walk.models[0]
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one == other:
            continue
        ends = min(len(one), len(other))
        byte = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), ends)
        text = f"output {at} ({graph.tensors[graph.outputs[at]].name!r}): byte {byte} is not what the source computes there"
        wrote = [call for start, end, call in walk.writers.get(graph.outputs[at], ()) if start <= byte < end]
        raise Refused(text, wrote[-1]) if wrote else Refused(text)


def _tags_of(tensor: Tensor) -> int:
    """Return how many tags represent a computed tensor.

    It is one tag where the size is known only at run time, so that two such tensors still differ.
    """
    return tensor.size or 1


def _input(world: World, graph: Graph, at: int) -> array[int]:
    tensor = graph.tensors[graph.inputs[at]]
    return world.symbols.tags(("input", at), _tags_of(tensor))


Hints = dict[tuple[str, int], int]  # NeutronGraph and byte of a call → number of the computation that it matches


@dataclass
class Walk:
    """Evaluates a model with tags in place of values; `expected` are the variables of the source."""

    world: World
    models: list[Graph]
    expected: dict[bytes, Variable] | None = None
    hints: Hints | None = None
    variables: dict[bytes, Variable] = field(default_factory=dict)
    handles: dict[int, bytes] = field(default_factory=dict)
    claimed: set[bytes] = field(default_factory=set)
    recognised: Hints = field(default_factory=dict)
    room: Room = field(default_factory=Room)
    writers: dict[int, list[tuple[int, int, int]]] = field(
        default_factory=dict
    )  # tensor → (start, end, byte of the call that wrote them)
    graphs: int = 0
    calls: int = 0
    copies: int = 0

    def proof(self) -> Proof:
        """Return the proof with the counts so far."""
        return Proof(self.graphs, self.calls, self.copies, len(self.models[0].outputs), self.recognised)

    def outputs(self) -> list[array[int]]:
        """Evaluate the main graph and return the tags of its outputs."""
        graph = self.models[0]
        values = Values(graph)
        for at, index in enumerate(graph.inputs):
            values[index] = _input(self.world, graph, at)
        for op in graph.operators:
            self.world.label = f"operator {op.number} ({op.code})"
            made = self.operator(graph, op, values)
            for index, tags in zip(op.outputs, made, strict=False):
                if index >= 0:
                    values[index] = tags
        for index in graph.outputs:
            if not values.is_known(index):
                raise Refused(f"output {graph.tensors[index].name!r} is never computed")
        return [values[index] for index in graph.outputs]

    def operator(self, graph: Graph, op: Operator, values: Values) -> list[array[int]]:
        """Return the tags of an operator's outputs."""
        for index in op.inputs:
            if index >= 0 and not values.is_known(index):
                tensor = graph.tensors[index]
                if not tensor.variable:
                    text = f"operator {op.number} ({op.code}) reads {tensor.name!r} before it is computed"
                    raise Refused(f"{text}", op.offset)
                values[index] = self._variable_tensor(graph, index)
        if op.code == "CUSTOM" and op.custom == b"NeutronGraph" and self._is_open(graph, op):
            if self.expected is None:
                raise Refused("the source is a compiled model itself", op.offset)
            return self.graph(graph, op, values)
        if op.code in _VARIABLES:
            return self.variable(graph, op, values)
        if op.code in CONTROL:
            return self.control(graph, op, values)
        context = Context(self.world, graph, op, values)
        known = check_shapes(context)
        made = self._by_rule(context, known=known)
        self._check_operator(context, understood=known and made is not None)
        if made is None:
            return self.opaque(graph, op, values)
        for index, tags in context.kept.items():
            self._keep(graph, index, values, tags)
        return made

    def _by_rule(self, c: Context, *, known: bool) -> list[array[int]] | None:
        """Return the output tags by the operator's rule; None where no rule covers these tensors."""
        rule = RULES.get(c.op.code)
        outputs = [c.graph.tensors[index] for index in c.op.outputs if index >= 0]
        if (
            rule is None
            or not outputs
            or not has_declared_sizes(c)
            or (not known and not all(one.size for one in outputs))
        ):
            return None
        try:
            made = rule(c)
        except Refused:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError):
            return None  # attributes that no rule models: the operator is opaque
        if made is None:
            return None
        for index, tags in zip(c.op.outputs, made, strict=True):
            if index >= 0 and len(tags) != c.graph.tensors[index].size:
                raise Refused(f"operator {c.op.number} ({c.op.code}) makes {len(tags)} bytes", c.op.offset)
        return made

    def _check_operator(self, c: Context, *, understood: bool) -> None:
        """Refuse an operator that is not one of the source's, with equal contents and inputs, unless a rule models it."""
        op, tensors = c.op, c.graph.tensors
        inputs = tuple((tensors[i].name, tensors[i].form, digest(c.values[i])) if i >= 0 else None for i in op.inputs)
        rest = tuple(tuple((tensors[i].name, tensors[i].form) for i in part) for part in (op.outputs, op.intermediates))
        key = contents(self.models, op), inputs, rest
        if self.expected is None:
            self.world.moved.add(key)
        elif key not in self.world.moved and not (understood and is_plain(op) and takes_inputs(op)):
            raise Refused(f"operator {op.number} ({op.code}) is none of the source's", op.offset)

    def control(self, graph: Graph, op: Operator, values: Values) -> list[array[int]]:
        """Return the output tags of a loop or branch; it is opaque where its conditions are not known."""
        effects, label = len(self.world.effects), self.world.label
        given = [(graph.tensors[i].shape, values[i]) for i in op.inputs if i >= 0]
        control = Control(self.models, self.world, self.operator, self.room)
        found = control.evaluate(op, given) if len(given) == len(op.inputs) else None
        self.world.label = label
        if found is None or len(found) != len(op.outputs):
            del self.world.effects[effects:]
            return self.opaque(graph, op, values)
        for index, (_, tags) in zip(op.outputs, found, strict=True):
            if len(tags) != graph.tensors[index].size:
                raise Refused(f"operator {op.number} ({op.code}) makes {len(tags)} bytes", op.offset)
        self.world.size += control.spent
        return [tags for _, tags in found]

    def _name(self, graph: Graph, index: int) -> bytes:
        """Return a unique name of a variable tensor: its name and its rank among variables of that name.

        It begins with a zero byte, so it never equals the name of a resource.
        """
        name = graph.tensors[index].name
        same = sum(1 for tensor in graph.tensors[:index] if tensor.variable and tensor.name == name)
        return b"\0%d\0" % same + name.encode()

    def _variable_tensor(self, graph: Graph, index: int) -> array[int]:
        """Return the tags of a variable tensor at the start of a run, and register the variable.

        Before the first run it holds its zero point, as in LiteRT.
        """
        tensor, name = graph.tensors[index], self._name(graph, index)
        start = self.world.symbols.tags(("variable", name, tensor.size), tensor.size)
        self.variables[name] = Variable(first_contents(tensor), start)
        return start

    def _keep(self, graph: Graph, index: int, values: Values, tags: array[int]) -> None:
        values[index] = tags
        self.variables[self._name(graph, index)].end = tags

    def variable(self, graph: Graph, op: Operator, values: Values) -> list[array[int]]:
        """Evaluate an operator on a variable.

        Variables are known by name; the contents of one at the start of a run are a block of tags of their own.
        """
        if op.code == "VAR_HANDLE":
            name = b"/".join(part for part in (op.options.get("Container"), op.options.get("SharedName")) if part)
            self.handles[op.outputs[0]] = name
            self.variables.setdefault(name, Variable())
            return [array("Q")]
        if op.code == "CALL_ONCE":
            number = op.options.get("InitSubgraphIndex", 0)
            if not 0 < number < len(self.models):
                raise Refused(f"CALL_ONCE names graph {number}", op.offset)
            self._initialize(self.models[number])
            return []
        if op.inputs[0] not in self.handles:
            raise Refused(f"operator {op.number} ({op.code}) has no variable", op.offset)
        name = self.handles[op.inputs[0]]
        variable = self.variables[name]
        if op.code == "ASSIGN_VARIABLE":
            variable.end = values[op.inputs[1]]
            return []
        if variable.end is not None:
            return [variable.end]
        size = graph.tensors[op.outputs[0]].size
        variable.start = self.world.symbols.tags(("variable", name, size), size)
        return [variable.start]

    def _initialize(self, graph: Graph) -> None:
        inner = Walk(self.world, [graph], self.expected)
        values = Values(graph)
        for op in graph.operators:
            for index, tags in zip(op.outputs, inner.operator(graph, op, values), strict=False):
                values[index] = tags
        for name, variable in inner.variables.items():
            if variable.end is not None:
                self.variables.setdefault(name, Variable()).initial = value_of(variable.end)

    def opaque(self, graph: Graph, op: Operator, values: Values) -> list[array[int]]:
        """Return output tags that depend only on the operator's attributes and inputs; nothing else is known about them."""

        inputs = tuple((graph.tensors[i].form, digest(values[i])) if i >= 0 else None for i in op.inputs)
        forms = tuple(tuple(graph.tensors[i].form for i in part) for part in (op.outputs, op.intermediates))
        key: tuple[object, ...] = (contents(self.models, op), inputs, *forms)
        held = [i for i in op.inputs if i >= 0 and graph.tensors[i].variable]
        if op.code in _STATEFUL or not op.outputs or held:
            key = (*key, len(self.world.effects))  # earlier operators with effects are compared as a list at the end
            self.world.effects.append(key)
        for at, index in enumerate(held):
            tags = self.world.symbols.tags(("opaque state", key, at), _tags_of(graph.tensors[index]))
            self._keep(graph, index, values, tags)
        return [
            self.world.symbols.tags(("opaque", key, at), _tags_of(graph.tensors[index]))
            for at, index in enumerate(op.outputs)
        ]

    def graph(self, graph: Graph, op: Operator, values: Values) -> list[array[int]]:
        """Replay a NeutronGraph and return the tags of its outputs."""
        where = f"operator {op.number} (NeutronGraph)"
        blocks = []
        for index in op.inputs[-_BLOCKS:]:
            data = graph.tensors[index].data if index >= 0 else None
            if data is None:
                raise Refused(f"{where}: its blocks are no constants", op.offset)
            blocks.append(bytes(data))
        starts = tuple(graph.tensors[index].at for index in op.inputs[-_BLOCKS:])
        if len(blocks) < _BLOCKS:
            raise Refused(f"{where}: it has {len(op.inputs)} inputs", op.offset)
        if min((*op.inputs, *op.outputs)) < 0:
            raise Refused(f"{where}: it has no tensor where it should have one", op.offset)
        given = [graph.tensors[i] for i in op.inputs[:-_BLOCKS]]
        outputs = [graph.tensors[i] for i in op.outputs]
        microcode, weights, kernels_block = blocks
        inputs = [values[i] for i in op.inputs[:-_BLOCKS]]
        try:
            machine = self.replay((microcode, weights, kernels_block), inputs, given, outputs, where)
        except Refused as error:
            raise error.of(where).inside(starts) from None
        spare = [i for at, i in enumerate(op.outputs) if ("output", at) not in machine.regions]
        check_graph_op(
            op, [graph.tensors[i] for i in (*op.inputs[-_BLOCKS:], *spare)], machine.program, self.graphs - 1
        )
        for at, index in enumerate(op.outputs):
            self.writers[index] = [(low, end, starts[0] + call) for low, end, call in machine.writers.get(at, ())]
        return [machine.regions["output", at] for at in range(len(op.outputs)) if ("output", at) in machine.regions]

    def _is_open(self, graph: Graph, op: Operator) -> bool:
        """Return whether to replay this microcode; NXP's own is an ordinary operator where the source has the same."""
        data = graph.tensors[op.inputs[-_BLOCKS]].data if len(op.inputs) >= _BLOCKS else None
        if data is None or not is_foreign(data):
            return True
        key = ("foreign", bytes(data))
        if self.expected is None:
            self.world.seen.add(key)
        return key not in self.world.seen

    def replay(
        self,
        blocks: tuple[bytes, bytes, bytes],
        inputs: list[array[int]],
        given: list[Tensor],
        outputs: list[Tensor],
        where: str,
    ) -> Machine:
        """Replay the microcode of one NeutronGraph on tags."""
        most = _ROOM * (self.world.size + len(blocks[1])) + _LEAST_ROOM
        program = decode(*blocks, most)
        _has_rules(program)
        if (memory := sum(program.sizes.values())) > most:
            raise Refused(f"it asks for {memory} bytes, which no schedule of the source needs", 36)
        rows = [[t for t in program.tensors if t["kind"] == kind] for kind in (0, 1)]
        if len(rows[0]) != len(inputs) or len(rows[1]) > len(outputs):
            raise Refused(f"it has {len(rows[0])} inputs and {len(rows[1])} outputs")
        for kind, tensors in ((0, given), (1, outputs)):
            for row, tensor in zip(rows[kind], tensors, strict=False):
                scale, zero = tensor.quantization
                same = (row["dtype"], row["bytes"], row["shape"]) == (tensor.dtype, tensor.size, tensor.shape)
                if not same or (len(tensor.scale) == 1 and (row["scale"], row["zero"]) != (scale, zero)):
                    raise Refused(f"row {row['index']} of the tensor table is not {tensor.name!r}", row["at"])
        machine = self._replay_with_states(program, program.weights, inputs, where)
        for index, tags in enumerate(inputs):
            if machine.regions["input", index] != tags:
                raise Refused(f"input {index} is not left as it was")
        self.graphs += 1
        self.calls += machine.calls
        self.copies += machine.copies
        return machine

    def _replay_with_states(self, program: Program, weights: bytes, inputs: list[array[int]], where: str) -> Machine:
        """Return the machine after a run that assigns a variable of the source to each state.

        Candidates have the state's size and first contents; a limited number of assignments is tried until one is proved.
        """
        refusal = Refused("its state is no variable of the source")
        for tried, names in enumerate(self._assignments(program)):
            if tried == _MOST_ASSIGNMENTS:
                break
            machine = Machine(program, self.world, where, hints=self.hints)
            starts = [self._start(name) for name in names]
            machine.start(weights, inputs, starts)
            try:
                machine.run()
                for state, name in zip(program.states, names, strict=True):
                    self._check_state(machine, state, name)
            except Refused as error:
                refusal = error
                continue
            self.claimed |= set(names)
            self.recognised.update(machine.recognised_calls())
            return machine
        raise refusal

    def _start(self, name: bytes) -> array[int]:
        assert self.expected is not None
        variable = self.expected[name]
        start = variable.start
        if start is None and variable.end is not None:
            start = self.world.symbols.tags(("variable", name, len(variable.end)), len(variable.end))
        assert start is not None
        return start

    def _check_state(self, machine: Machine, state: State, name: bytes) -> None:
        assert self.expected is not None
        start = self._start(name)
        wanted = self.expected[name].end or start
        if machine.regions["state", 0][state.offset : state.offset + len(wanted)] != wanted:
            raise Refused(f"the state at {state.offset} is not left as the source leaves {_quote_name(name)}")

    def _assignments(self, program: Program) -> Iterator[tuple[bytes, ...]]:
        """Yield possible variables for the states, in the order of the source first."""
        free = [
            (name, one) for name, one in (self.expected or {}).items()
            if name not in self.claimed and name not in self.variables and (one.start or one.end)
        ]  # fmt: skip
        return assignments(program.states, free)


def _has_rules(program: Program) -> None:
    """Refuse a kernel without a rule by its name, before any other check of the program."""
    for item in program.steps:
        for step in item.body if isinstance(item, Loop) else (item,):
            if isinstance(step, Call) and step.kernel not in kernels.RULES:
                raise Refused(f"the checker has no rule for kernel {step.kernel}", step.at)
