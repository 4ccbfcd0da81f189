"""The training loop of `train.py`: its schedule, its state on disk, and its CUDA graph."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import torch

from optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor, nn

BEGIN = time.time()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SAVE_INTERVAL_S = 60
REPORT_INTERVAL_S = 10
# Steps before the capture that launch each kernel. cuDNN benchmarks its algorithms, the optimizers
# allocate their state, and torch.compile compiles the rest.
EAGER_STEPS = 5


def say(*words: object) -> None:
    print(f"[{time.time() - BEGIN:6.1f}]", *words, flush=True)


class Average:
    """An exponential average of a module's parameters."""

    def __init__(self, module: nn.Module) -> None:
        self.average = copy.deepcopy(module).requires_grad_(requires_grad=False)
        self.now, self.then = list(module.parameters()), list(self.average.parameters())

    @torch.no_grad()
    def update(self, weight: Tensor) -> None:
        """Move the average towards the parameters by `weight`, a scalar on the device."""
        changes = torch._foreach_sub(self.now, self.then)  # noqa: SLF001 - it has no public name
        torch._foreach_mul_(changes, weight)
        torch._foreach_add_(self.then, changes)


class Signals:
    """Records SIGINT and SIGTERM while it is entered, instead of ending the process."""

    def __init__(self) -> None:
        self.received = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.before[number] = signal.signal(number, self.note)
        return self

    def note(self, number: int, _frame: object) -> None:
        self.received = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Loop:
    """Trains modules with a loss for a given time, and can continue from its saved state.

    The learning rate rises for 100 steps, stays constant, and falls to 0 over the last 40 % of the
    time.
    """

    def __init__(
        self,
        name: str,
        modules: list[nn.Module],
        loss_of: Callable[[], Tensor],
        *,
        rate: float,
        decay: float,
        state_file: Path,
        graph: bool,
    ) -> None:
        self.name, self.modules, self.loss_of = name, modules, loss_of
        self.rate, self.decay, self.state_file = rate, decay, state_file
        self.optimizer = Optimizer(modules)
        self.averages = [Average(module) for module in modules]
        self.count, self.seconds = 0, 0.0
        # A step reads the first two and increments the third. They must not move, because a graph
        # stores their addresses.
        self.rate_now = torch.zeros((), device=DEVICE)
        self.weight_now = torch.zeros((), device=DEVICE)
        self.loss_sum = torch.zeros((), device=DEVICE)
        self.stream = torch.cuda.Stream() if DEVICE == "cuda" else None
        self.graph = torch.cuda.CUDAGraph() if graph and self.stream else None
        self.captured = False

    def load_state(self) -> None:
        """Load the state that `save_state` wrote.

        Raises:
            SystemExit: If the state is missing, or belongs to another stage.
        """
        if not self.state_file.exists():
            sys.exit(f"missing state: {self.state_file}. Start without --continue")
        state = torch.load(self.state_file, map_location="cpu", weights_only=True)
        if state["stage"] != self.name:
            sys.exit(f"{self.state_file} belongs to the stage {state['stage']}, not {self.name}")
        for module, saved in zip(self.modules, state["modules"], strict=True):
            module.load_state_dict(saved)
        for average, saved in zip(self.averages, state["averages"], strict=True):
            average.average.load_state_dict(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.count, self.seconds = state["count"], state["seconds"]
        say(f"{self.name} continues after {self.count} steps and {self.seconds:.1f} s")

    def save_state(self) -> None:
        """Replace the state file atomically: readers find the old or the new state."""
        state = {
            "stage": self.name,
            "count": self.count,
            "seconds": self.seconds,
            "modules": [module.state_dict() for module in self.modules],
            "averages": [average.average.state_dict() for average in self.averages],
            "optimizer": self.optimizer.state_dict(),
        }
        partial = self.state_file.with_suffix(".partial")
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.state_file)

    def run(self, seconds: float) -> list[nn.Module]:
        """Train until the total training time is `seconds`, and return the averages.

        The first forward and backward pass, which compiles, and the time before it do not count.

        Raises:
            SystemExit: After SIGINT or SIGTERM, with the state saved.
        """
        with self._on_stream(), Signals() as signals:
            self.loss_of().backward()
            for module in self.modules:
                module.zero_grad(set_to_none=True)
            self._synchronize()
            say(self.name, "begins")
            self._train(seconds, signals)
            self.save_state()
            if signals.received:
                say(f"{self.name} stopped after {self.count} steps. Continue with --continue")
                sys.exit(128 + signals.received)
        say(f"{self.name} ended after {self.count} steps, {self.seconds:.1f} s")
        return [average.average for average in self.averages]

    def _train(self, seconds: float, signals: Signals) -> None:
        first, steps_here, reported_steps = time.time() - self.seconds, 0, 0
        reported = saved = begin = time.time()
        while self.seconds < seconds and not signals.received:
            left = (seconds - self.seconds) / seconds
            self.rate_now.fill_(self.rate * min(1.0, (self.count + 1) / 100) * min(1.0, left / 0.4))
            self.weight_now.fill_(1 - min(self.decay, (self.count + 1) / (self.count + 11)))
            if self.graph and steps_here >= EAGER_STEPS:
                self._replay(self.graph)
            else:
                self._step()
            self.count += 1
            steps_here += 1
            if self.count % 8 == 0:
                self._synchronize()  # otherwise the clock would not include pending GPU work
            now = time.time()
            self.seconds = now - first
            if now - reported > REPORT_INTERVAL_S:
                loss = self.loss_sum.item() / (steps_here - reported_steps)
                speed = steps_here / (now - begin)
                say(f"{self.name} step {self.count} loss {loss:.4f} {speed:.2f} steps/s")
                self.loss_sum.zero_()
                reported, reported_steps = now, steps_here
            if now - saved > SAVE_INTERVAL_S:
                self.save_state()
                saved = time.time()
        self._synchronize()
        self.seconds = time.time() - first

    def _step(self) -> None:
        """Run one step. It never waits for the GPU, and its whole state is in tensors."""
        loss = self.loss_of()
        loss.backward()
        self.optimizer.step(self.rate_now)
        for average in self.averages:
            average.update(self.weight_now)
        self.loss_sum += loss.detach()

    def _replay(self, graph: torch.cuda.CUDAGraph) -> None:
        if not self.captured:
            # The capture executes nothing. `Optimizer.step` has cleared the gradients, so the graph
            # allocates them in its own memory.
            try:
                with torch.cuda.graph(graph, stream=self.stream):
                    self._step()
            except RuntimeError as error:
                # A failed capture leaves the random generator unusable, so this process cannot
                # continue.
                error.add_note("--no-graph trains without a CUDA graph")
                raise
            self.captured = True
            say(f"{self.name}: captured a step in a CUDA graph")
        graph.replay()

    def _on_stream(self) -> contextlib.AbstractContextManager[object]:
        """Return a context with a separate stream, because the default stream cannot be captured.

        All steps run on it, because libraries allocate their workspace per stream.
        """
        if self.stream is None:
            return contextlib.nullcontext()
        self.stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self.stream)

    def _synchronize(self) -> None:
        if self.stream is not None:
            torch.cuda.synchronize()
