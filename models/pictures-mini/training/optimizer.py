"""Muon for matrices, AdamW for all other parameters.

Muon (Jordan et al. 2024) steps along the orthogonalized momentum. The scale 0.2 sqrt(max(rows,
columns)) gives its steps the size of AdamW's, so both use the same learning rate (Liu et al. 2025,
arXiv:2502.16982). A convolution is treated as a matrix: output channels by all other dimensions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


def orthogonalized(matrices: Tensor, steps: int = 5) -> Tensor:
    """Return approximately U V^T for each matrix U S V^T of [N, rows, columns].

    It uses a quintic Newton-Schulz iteration, in bfloat16 on a GPU.
    """
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if tall else x).float()


class Optimizer:
    def __init__(
        self, modules: list[nn.Module], weight_decay: float = 0.02, momentum: float = 0.95
    ) -> None:
        groups: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        rest: list[nn.Parameter] = []
        for module in modules:
            for name, parameter in module.named_parameters():
                if not parameter.requires_grad:
                    continue
                edge = "embedding." in name or "conv_in" in name or "conv_out" in name
                if parameter.ndim >= 2 and not edge and min(parameter.flatten(1).shape) >= 16:
                    rows, columns = parameter.flatten(1).shape
                    groups[rows, columns].append(parameter)
                else:
                    rest.append(parameter)
        self.groups = list(groups.values())
        self.momenta = [
            torch.stack([p.detach().flatten(1) for p in group]).zero_() for group in self.groups
        ]
        self.weight_decay, self.momentum = weight_decay, momentum
        on_gpu = rest[0].is_cuda
        # `capturable` keeps the step count on the GPU, which a CUDA graph needs to increment it.
        self.adam = torch.optim.AdamW(
            rest,
            lr=torch.zeros((), device=rest[0].device),
            weight_decay=0.0,
            betas=(0.9, 0.99),
            fused=on_gpu or None,
            capturable=on_gpu,
        )
        self.parameters = rest + [parameter for group in self.groups for parameter in group]

    @torch.no_grad()
    def step(self, rate: Tensor) -> None:
        """Step with the learning rate `rate`, a scalar on the device, and clear the gradients.

        The step does not wait for the GPU or read `rate` on the CPU, so a CUDA graph can capture
        it. Each replay of the graph reads the rate from the same tensor.
        """
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        kept = 1 - rate * self.weight_decay
        for parameters, average in zip(self.groups, self.momenta, strict=True):
            gradients = torch.stack([p.grad.flatten(1) for p in parameters if p.grad is not None])
            average.lerp_(gradients, 1 - self.momentum)
            steps = orthogonalized(gradients.lerp(average, self.momentum))
            steps = steps * (rate * -0.2 * max(steps.shape[1:]) ** 0.5)
            torch._foreach_mul_(parameters, kept)
            changes = [s.view_as(p) for s, p in zip(steps.unbind(), parameters, strict=True)]
            torch._foreach_add_(parameters, changes)
        for parameter in self.parameters:
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"adam": self.adam.state_dict()["state"], "momenta": self.momenta}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Keep the settings of this device: the state may come from another device.
        settings = self.adam.state_dict()["param_groups"]
        self.adam.load_state_dict({"state": state["adam"], "param_groups": settings})
        for momentum, saved in zip(self.momenta, state["momenta"], strict=True):
            momentum.copy_(saved)
