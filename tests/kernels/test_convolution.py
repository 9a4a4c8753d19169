"""Stacked convolutions against torch's own, in float64, one model after the other."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from databanzhaf.kernels.convolution import StackedConv2d
from databanzhaf.kernels.programs import program_of
from databanzhaf.kernels.torch_layers import UnfoldedConv2d
from tests.kernels.interpreted import interpret, needs_triton

# models, rows, channels, height, width, outputs, kernel, stride, padding, bias
CASES = [
    (2, 2, 3, 9, 11, 5, (3, 3), (1, 1), (0, 0), True),
    (2, 1, 4, 8, 8, 3, (5, 3), (2, 1), (2, 1), False),
    (1, 2, 1, 10, 7, 20, (3, 2), (1, 2), (1, 0), True),
    (2, 3, 9, 7, 7, 4, (1, 1), (1, 1), (0, 0), True),
    (1, 1, 2, 6, 6, 33, (2, 2), (1, 1), (0, 0), False),
]


def error(found, true):
    return float((found.double() - true).norm() / true.norm().clamp(min=1e-12))


class Trial:
    """One layer, some models and rows, and a loss that is linear in its outputs."""

    def __init__(self, case, pool, device):
        models, n, channels, height, width, outputs, kernel, stride, padding, bias = case
        torch.manual_seed(0)
        plain = nn.Conv2d(channels, outputs, kernel, stride, padding, bias=bias).to(device)
        self.pool, self.plain, self.layer = pool, plain, StackedConv2d(plain, pool=pool)
        self.stack = {
            name: 0.3 * torch.randn(models, *p.shape, device=device)
            for name, p in plain.named_parameters()
        }
        self.X = torch.randn(models, n, channels, height, width, device=device)
        self.weights = torch.randn(self.true_outputs(0).shape, device=device)

    def outputs(self):
        """All models on the rows of the first."""
        with torch.no_grad():
            return vmap(lambda p: functional_call(self.layer, p, (self.X[0],)))(self.stack)

    def slopes(self, compiles=False):
        """By parameters and by rows."""

        def loss(parameters, x):
            return (functional_call(self.layer, parameters, (x,)) * self.weights).sum()

        def run(stack, X):
            by_parameter, by_row = vmap(grad(loss, argnums=(0, 1)))(stack, X)
            return {**by_parameter, "x": by_row}

        return (torch.compile(run, dynamic=False) if compiles else run)(self.stack, self.X)

    def true_outputs(self, model):
        return self._true(self._parameters(model), self.X[0].double())

    def true_slopes(self, model):
        by_parameter, by_row = grad(
            lambda p, x: (self._true(p, x) * self.weights).sum(), argnums=(0, 1)
        )(self._parameters(model), self.X[model].double())
        return {**by_parameter, "x": by_row}

    def errors(self, compiles=False):
        """Relative errors over all models."""
        models = range(len(self.X))
        true = [self.true_slopes(model) for model in models]
        return {
            "outputs": error(self.outputs(), torch.stack([self.true_outputs(m) for m in models])),
            **{
                name: error(found, torch.stack([each[name] for each in true]))
                for name, found in self.slopes(compiles).items()
            },
        }

    def _parameters(self, model):
        return {name: p[model].double() for name, p in self.stack.items()}

    def _true(self, parameters, x):
        out = nn.functional.conv2d(
            x,
            parameters["weight"],
            parameters.get("bias"),
            self.plain.stride,
            self.plain.padding,
        )
        return nn.functional.max_pool2d(torch.relu(out), 2) if self.pool else out


def check(device, cases=CASES, **options):
    for case in cases:
        for pool in (False, True):
            found = Trial(case, pool, device).errors(**options)
            assert max(found.values()) < 1e-5, (case, pool, found)
    trial = Trial(cases[0], True, device)
    frozen = {"weight": trial.stack["weight"][0]}

    def loss(bias, x):
        return (functional_call(trial.layer, {"bias": bias, **frozen}, (x,)) * trial.weights).sum()

    trial.stack["weight"][:] = frozen["weight"]
    torch.testing.assert_close(
        vmap(grad(loss))(trial.stack["bias"], trial.X), trial.slopes()["bias"]
    )


def test_without_triton_the_layer_is_its_twin_in_torch():
    check("cpu")


@needs_triton
def test_kernels_in_the_interpreter():
    interpret("from tests.kernels.test_convolution import check; check('cpu')")


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
LENET = (4, 32, 20, 12, 12, 40, (5, 5), (1, 1), (0, 0), True)
WIDE = (2, 4, 96, 9, 9, 128, (3, 3), (1, 1), (1, 1), True)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns about itself
def test_kernels_on_cuda():
    check("cuda", [*CASES, LENET, WIDE])
    check("cuda", [LENET], compiles=True)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize(
    "case",
    [
        LENET,
        (64, 32, 3, 32, 32, 6, (5, 5), (1, 1), (0, 0), True),
        (64, 32, 20, 12, 12, 40, (5, 5), (1, 1), (0, 0), True),
        (64, 32, 6, 14, 14, 16, (5, 5), (1, 1), (0, 0), True),
        (64, 32, 1, 28, 28, 20, (5, 5), (1, 1), (0, 0), True),
        WIDE,
    ],
    ids=str,
)
def test_tf32_products_are_the_same_every_time(case):
    """A race between a kernel's threads would show as another sum."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for pool in (False, True):
            trial = Trial(case, pool, "cuda")
            if not pool:
                assert max(trial.errors().values()) < 2e-3
            # Of two nearly equal numbers TF32 may find the other one larger: slopes go elsewhere.
            first, outputs = trial.slopes(), trial.outputs()
            for _ in range(4):
                torch.testing.assert_close(trial.slopes(), first, rtol=0, atol=0)
                assert torch.equal(trial.outputs(), outputs)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


# ------------------------------------------------------------------ which layers are joined


class Tutorial(nn.Module):
    """torch's CIFAR10 tutorial: one maximum stands behind two convolutions, ReLU is a function."""

    def __init__(self):
        super().__init__()
        self.conv1, self.pool, self.conv2 = nn.Conv2d(3, 6, 5), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5)
        self.fc = nn.Linear(400, 10)

    def forward(self, x):
        x = self.pool(nn.functional.relu(self.conv1(x)))
        x = nn.functional.relu(self.pool(self.conv2(x)))
        return self.fc(torch.flatten(x, 1))


class ReadsTheProduct(Tutorial):
    def forward(self, x):
        h = self.conv1(x)
        x = self.pool(torch.relu(h)) + h[:, :, ::2, ::2]
        return self.fc(torch.flatten(self.pool(torch.relu(self.conv2(x))), 1))


class PoolsTheRows(Tutorial):
    def forward(self, x):
        x = nn.functional.interpolate(self.pool(x), scale_factor=2)
        return super().forward(x)


class Branches(Tutorial):
    def forward(self, x):
        return super().forward(x * 2 if x.sum() > 0 else x)


class ReadsTheProductWhenScoring(Tutorial):
    def forward(self, x):
        h = self.conv1(x)
        x = self.pool(torch.relu(h))
        if not self.training:
            x = x + h[:, :, ::2, ::2]
        return self.fc(torch.flatten(self.pool(torch.relu(self.conv2(x))), 1))


class PoolsByFunction(Tutorial):
    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        return self.fc(torch.flatten(self.pool(self.conv2(x).relu()), 1))


class LeaksTheSlope(Tutorial):
    def forward(self, x):
        x = self.pool(nn.functional.leaky_relu(self.conv1(x)))
        return self.fc(torch.flatten(self.pool(torch.relu(self.conv2(x))), 1))


def sequence():
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Sequential(nn.Conv2d(6, 16, 5), nn.MaxPool2d(2, 2), nn.ReLU()),
        nn.Flatten(), nn.Linear(400, 10), nn.ReLU(),
    )  # fmt: skip


def strides():
    return nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten())


@pytest.mark.parametrize(
    ("make", "joined"),
    [
        (sequence, [True, True]),
        (Tutorial, [True, True]),
        (ReadsTheProduct, [False, False]),  # the maximum that both share stays
        (PoolsTheRows, [False, False]),
        (Branches, [False, False]),
        (ReadsTheProductWhenScoring, [False, False]),
        (PoolsByFunction, [False, True]),
        (LeaksTheSlope, [False, False]),
        (strides, [False]),
    ],
)
def test_relu_and_maximum_join_a_convolution_where_nothing_else_reads_them(make, joined):
    torch.manual_seed(0)
    plain = make()
    program = program_of(lambda: make_as(plain, make), unfold=True, triton=True)
    layers = [layer for layer in program.module.modules() if isinstance(layer, StackedConv2d)]
    assert [layer.pool for layer in layers] == joined
    assert [name for name, _ in program.module.named_parameters()] == [
        name for name, _ in plain.named_parameters()
    ]
    x = torch.randn(2, 3, 32, 32)
    for mode in (True, False):
        found, expected = program.module.train(mode)(x), plain.train(mode)(x)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


class Standardised(nn.Conv2d):
    def forward(self, x):
        weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        return nn.functional.conv2d(x, weight, self.bias)


class Loops(nn.Module):
    """Looks at its layers, and keeps what it is given."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 4, 5), nn.ReLU(), nn.MaxPool2d(2)])
        self.kept = None

    def forward(self, x):
        for layer in self.layers:
            x = layer(input=x) if isinstance(layer, nn.Conv2d) else layer(x)
            if isinstance(layer, nn.MaxPool2d):
                x = x * layer.kernel_size
        self.kept = x
        return x.flatten(1)


class AsksWhatItIsGiven(Tutorial):
    def forward(self, x):
        return super().forward(x) if isinstance(x, torch.Tensor) else super().forward(x * 2)


def hooked(place, kind):
    def make():
        module = nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        getattr(module[place], f"register_{kind}")(
            (lambda layer, given, found: found * 3)
            if kind == "forward_hook"
            else (lambda layer, given: (given[0] * 3,))
        )
        return module

    return make


def normed(how):
    def make():
        return nn.Sequential(how(nn.Conv2d(3, 4, 5)), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())

    return make


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(Standardised(3, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        Loops,
        AsksWhatItIsGiven,
        normed(nn.utils.weight_norm),
        normed(nn.utils.parametrizations.weight_norm),
        *(
            hooked(place, kind)
            for place in range(3)
            for kind in ("forward_hook", "forward_pre_hook")
        ),
    ],
)
@pytest.mark.parametrize("triton", [True, False])
def test_modules_that_do_more_than_their_layers_say_the_same(make, triton):
    torch.manual_seed(0)
    plain, x = make(), torch.randn(2, 3, 32, 32)
    program = program_of(lambda: make_as(plain, make), unfold=True, triton=triton, example=x)
    for mode in (True, False):
        found, expected = program.module.train(mode)(x), plain.train(mode)(x)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for one, other in zip(program.module.parameters(), plain.parameters(), strict=True):
        slopes = [
            torch.autograd.grad(module(x).square().sum(), p)[0]
            for module, p in ((program.module, one), (plain, other))
        ]
        torch.testing.assert_close(*slopes, atol=1e-3, rtol=1e-4)


def make_as(plain, make):
    copy = make()
    copy.load_state_dict(plain.state_dict())
    return copy


def test_wide_layers_stay_with_the_library():
    program = program_of(
        lambda: nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.MaxPool2d(2)),
        unfold=True,
        triton=True,
    )
    assert type(program.module[0]) is UnfoldedConv2d
    assert isinstance(program.module[2], nn.MaxPool2d)
