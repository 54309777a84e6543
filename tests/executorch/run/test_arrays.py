from __future__ import annotations

import numpy as np
import torch

from openneutron.executorch.run.arrays import predictor, run_arrays


class Odd(torch.nn.Module):
    """Tells how it is asked: in which mode and on how many threads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 10 * self.training + 100 * (torch.get_num_threads() - 1)


def test_a_module_predicts_in_evaluation_mode_on_one_thread_and_is_left_as_it_was() -> None:
    model, threads = Odd(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = predictor(model, torch.zeros(1, 3))(np.ones((1, 3)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(found, np.ones((1, 3))) and found.dtype == np.float32
    assert model.training


def test_functions_and_programs_predict_too() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(1, 3),))
    for form in (lambda x: (x.relu(),), program):
        assert predictor(form, torch.zeros(1, 3))(np.array([[-1.0, 0.0, 2.0]])).tolist() == [[0.0, 0.0, 2.0]]
    (doubled,) = run_arrays(lambda x: (2 * x,), [np.ones(2, np.float32)])
    assert doubled.tolist() == [2.0, 2.0]
