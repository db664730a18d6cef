"""Live eager training: recomputation, gradient accumulation and the optimizer land on the layers they serve."""

import laws
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torchroof
from torchroof.device.roof import Ceiling

BATCH, A, B, C, OUT = 32, 64, 96, 80, 7


class Net(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.a = nn.Linear(A, B)
        self.block = nn.Sequential(nn.Linear(B, C), nn.ReLU(), nn.Linear(C, B))
        self.c = nn.Linear(B, OUT)
        self.scale = nn.Parameter(torch.ones(OUT))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = checkpoint(self.block, self.a(x), use_reentrant=self.reentrant)
        return self.c(x) * self.scale


def profiled(reentrant: bool, foreach: bool):
    model = Net(reentrant)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach)
    with torchroof.profile(model, schedule=torchroof.schedule(warmup=1, active=2), measure=False) as prof:
        for _ in range(3):
            for _ in range(2):
                model(torch.randn(BATCH, A)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    laws.check(prof.report.data)
    return model, prof.report.data


@pytest.fixture(scope="module", params=[(False, True), (True, False)], ids=["early stop, foreach", "reentrant, plain"])
def run(request):
    reentrant, foreach = request.param
    return reentrant, *profiled(reentrant, foreach)


def flops(data, path, phase, op):
    found = [r.flops for r in data.rows if (r.path, r.phase, r.op) == (path, phase, op)]
    return sum(found) if found else None


def test_products_by_layer_and_phase(run):
    reentrant, _, data = run
    calls = 2 * 2  # two counted steps of two micro-steps
    product = {"a": A * B, "block.0": B * C, "block.2": C * B, "c": B * OUT}
    for path, macs in product.items():
        assert flops(data, path, "forward", "aten::addmm") == calls * 2 * BATCH * macs
        # The input of `a` needs no gradient: one product; the others have two.
        assert flops(data, path, "backward", "aten::mm") == calls * (1 if path == "a" else 2) * 2 * BATCH * macs
    assert flops(data, "block.0", "recompute", "aten::addmm") == calls * 2 * BATCH * B * C
    # Early stop cuts the last product of the block: it has an event, and never ran.
    last = calls * 2 * BATCH * C * B if reentrant else 0
    assert flops(data, "block.2", "recompute", "aten::addmm") == last
    assert not [r for r in data.rows if r.phase == "recompute" and r.path in ("a", "c")]


def test_gradients_are_added_for_the_layer_that_owns_the_parameter(run):
    _, model, data = run
    owned = {name or "": sum(p.numel() for p in m.parameters(recurse=False)) for name, m in model.named_modules()}
    for path, elements in owned.items():
        if elements:
            # The first micro-step of each step stores the gradient, the second one adds to it.
            assert flops(data, path, "grad_accumulate", "aten::add_") == 2 * elements, path


def test_the_optimizer_is_shared_out_by_bytes(run):
    _, model, data = run
    owned = {name: sum(p.numel() for p in m.parameters(recurse=False)) for name, m in model.named_modules()}
    rows = [r for r in data.rows if r.phase == "optimizer" and r.op and r.op.endswith(("lerp_", "addcmul_"))]
    assert rows and {r.path for r in rows} == {name for name, n in owned.items() if n}
    total = sum(owned.values())
    for op in {r.op for r in rows}:
        whole = sum(r.flops for r in rows if r.op == op)
        for row in rows:
            if row.op == op:
                assert row.flops == pytest.approx(whole * owned[row.path] / total, abs=4)


def test_recomputation_counts_in_hfu_and_not_in_mfu():
    model = Net(reentrant=True)
    ceiling = Ceiling(
        kind="compute", precision="float32", pipe="vector", value=1e12, unit="FLOP/s", origin="given", source="test"
    )
    with torchroof.profile(model, measure=False, ceilings=[ceiling]) as prof:
        model(torch.randn(BATCH, A)).sum().backward()
    totals = prof.report.data.totals
    forward = A * B + B * C + C * B + B * OUT
    backward = A * B + 2 * (B * C + C * B + B * OUT)
    recomputed = B * C + C * B
    per_second = totals.step_ns * 1e-9 * 1e12
    assert totals.mfu == pytest.approx(2 * BATCH * (forward + backward) / per_second)
    assert totals.hfu == pytest.approx(2 * BATCH * (forward + backward + recomputed) / per_second)
