from __future__ import annotations

import openneutron
from openneutron.explore.compiled import draw_report
from openneutron.explore.partitions import draw_partitions
from tests import tiny


def test_nodes_of_a_delegate_are_in_its_group_and_keep_their_modules() -> None:
    report = openneutron.compile(tiny.convnet()).report
    plain, grouped = draw_report(report), draw_partitions(report)
    assert len(plain.nodes) == len(grouped.nodes) > 2
    for before, after in zip(plain.nodes, grouped.nodes, strict=True):
        assert after.namespace.startswith("partition 0 (neutron)") and after.namespace.endswith(before.namespace)
        assert after.edges == before.edges
