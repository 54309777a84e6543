from __future__ import annotations

from openneutron.compiler.back.dump import kernel_graph, task_list
from openneutron.compiler.l1 import State
from openneutron.compiler.plan.allocate import allocate
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Structure, segment_of, whole
from openneutron.machine import targets
from tests.compiler.graphs import Net


def test_a_graph_is_a_line_per_input_node_output_and_state() -> None:
    net = Net(8)
    graph = net.finish(net.conv(net.input, 3))
    graph.states = [State("h", 0, 0, bytes(256))]
    first, node, last, state = kernel_graph(graph).splitlines()
    assert first == "input 0: x (1, 8, 4, 8)" and last == "output 1: conv0"
    assert node.startswith("0: %1 (1, 8, 4, 8) = conv2d(%0, const[576], const[96], -, %1) Conv2dParams(")
    assert state == "state h: 256 bytes, %0 then %1"


def test_tasks_are_indented_in_their_loop() -> None:
    net = Net(8)
    graph = net.finish(net.conv(net.conv(net.conv(net.input, 3), 3), 1))
    structure = Structure.of(graph)
    order = [segment_of(structure, 0, 1, 2), whole(structure, 2)]
    tasks = allocate(schedule(graph, order, targets.load("imxrt700"), fetch_constants=True))
    lines = task_list(tasks).splitlines()
    assert (
        lines[0] == f"scratch {tasks.scratch_bytes} (lower bound {tasks.lower_bound}), prefetch {tasks.prefetch_bytes}"
    )
    assert sum(line.startswith("buffer") for line in lines) == len(tasks.buffers)
    loop = lines.index("loop 5")
    assert [line.split(" rows")[0] for line in lines[loop : loop + 3]] == ["loop 5", "  call node 0", "  call node 1"]
    assert lines[-1] == "call node 2 rows 0+8 step 0" and "wait 0" in lines
