"""ResNet-18 against its textbook twin, in double precision and member by member."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from grokbook.models.resnet import ResNet18
from tests import textbook_resnet as textbook
from tests.stacks import side_by_side

SMALL = ResNet18(classes=9, width=0.125, channels=1, size=40)  # 2 x 2 places are left at the readout
WIDTHS = (8, 16, 32, 64)
STATISTICS = ("running_mean", "running_var")


def ensemble(model: ResNet18, members: int) -> dict[str, Tensor]:
    """Members of different seeds, in float64, with gains, shifts and running statistics that matter."""
    params = side_by_side(model, members)
    generator = torch.Generator().manual_seed(7)
    for name, value in params.items():
        if value.ndim == 2 and not name.startswith("fc"):
            value += torch.rand(value.shape, generator=generator, dtype=torch.float64) / 2
    return params


def assert_same(ours: Tensor, plain: Tensor) -> None:
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12 * max(plain.abs().max().item(), 1))


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_gradients_and_statistics_equal_the_textbook(members: int, training: bool) -> None:
    params = ensemble(SMALL, members)
    before = {name: value.clone() for name, value in params.items()}
    learnt = {name: value.requires_grad_() for name, value in params.items() if not name.endswith(STATISTICS)}
    images = torch.randn(members, 6, 1, 40, 40, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    labels = torch.arange(6) % 9
    outputs = SMALL(params, images, training=training)
    losses = [nn.functional.cross_entropy(one, labels) for one in outputs]
    gradients = dict(zip(learnt, torch.autograd.grad(sum(losses), [*learnt.values()]), strict=True))
    for member in range(members):
        net = textbook.load(textbook.ResNet18(9, WIDTHS, 1).double(), before, member).train(training)
        expected = net(images[member])
        assert expected.std() > 0.05  # else agreement would mean little
        assert_same(outputs[member], expected)
        nn.functional.cross_entropy(expected, labels).backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().max() > 0
            assert_same(gradients[name][member], parameter.grad)
        for name, value in net.named_buffers():
            if name.endswith(STATISTICS):
                # torch counts the batch's variance with n - 1, on both sides
                assert_same(params[name][member], value)
                assert torch.equal(value, before[name][member]) != training


def test_it_has_the_parameters_of_the_common_one() -> None:
    shapes = ResNet18().shapes()
    plain = {
        name: tuple(value.shape)
        for name, value in textbook.ResNet18().state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    assert shapes == plain and list(shapes) == list(plain)
    learnt = {name: torch.Size(shape).numel() for name, shape in shapes.items() if not name.endswith(STATISTICS)}
    assert sum(learnt.values()) == 11_689_512
    # A few of the names and shapes that are written down everywhere, by hand.
    assert shapes["layer2.0.downsample.0.weight"] == (128, 64, 1, 1)
    assert shapes["layer4.1.conv2.weight"] == (512, 512, 3, 3)
    assert shapes["bn1.running_var"] == (64,) and shapes["fc.weight"] == (1000, 512)


@pytest.mark.parametrize("size", [32, 40, 64])
def test_stated_operations_are_those_that_are_counted(size: int) -> None:
    model = ResNet18(9, 0.125, 1, size)
    params = {name: value[None] for name, value in model.init(torch.Generator()).items()}
    images = torch.randn(1, 4, 1, size, size)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(params, images)
    assert 3 * counter.get_total_flops() / 4 == pytest.approx(model.flops_per_sample, rel=0.01)


def test_init_has_the_common_spreads() -> None:
    one = ResNet18(classes=200).init(torch.Generator().manual_seed(0))
    assert one["layer3.0.conv1.weight"].std().item() == pytest.approx((2 / (256 * 9)) ** 0.5, rel=0.01)
    assert one["fc.weight"].abs().max().item() == pytest.approx(512**-0.5, rel=0.01)
    assert one["bn1.weight"].min() == one["bn1.running_var"].max() == 1 and not one["bn1.bias"].any()


def test_flattening_reads_every_place_and_at_one_place_is_pooling() -> None:
    assert ResNet18(9, 0.125, 1, 40, "flatten").shapes()["fc.weight"] == (9, 64 * 4)
    pooled, flat = (ResNet18(9, 0.125, 1, 32, head) for head in ("pool", "flatten"))
    params = ensemble(pooled, 2)
    images = torch.randn(2, 3, 1, 32, 32, dtype=torch.float64)
    assert_same(flat(params, images), pooled(params, images))


def test_flattening_tells_places_apart_where_pooling_does_not() -> None:
    flat = ResNet18(9, 0.125, 1, 64, "flatten")
    params = ensemble(flat, 1)
    images = torch.randn(1, 2, 1, 64, 64, dtype=torch.float64)
    pooled = ResNet18(9, 0.125, 1, 64)
    mean = params | {"fc.weight": params["fc.weight"].view(1, 9, 64, 4).sum(-1)}
    same = params | {"fc.weight": (mean["fc.weight"] / 4)[..., None].expand(-1, -1, -1, 4).flatten(2)}
    assert_same(flat(same, images), pooled(mean, images))
    assert (flat(params, images) - pooled(mean, images)).abs().max() > 0.01


def test_weights_are_read_from_a_file_all_but_the_readout(tmp_path) -> None:
    file = tmp_path / "weights.pth"
    stored = textbook.ResNet18(1000, WIDTHS)
    torch.save(stored.state_dict(), file)
    model = ResNet18.pretrained(file, classes=9, width=0.125)
    params = model.init(torch.Generator().manual_seed(3))
    assert torch.equal(params["layer4.0.conv1.weight"], stored.state_dict()["layer4.0.conv1.weight"])
    assert params["fc.weight"].shape == (9, 64)
    assert model.weights_digest and model != ResNet18(classes=9, width=0.125)
    with pytest.raises(ValueError, match=r"conv1.weight is \(8, 3, 7, 7\) there and \(16, 3, 7, 7\) here"):
        ResNet18.pretrained(file, width=0.25).init(torch.Generator())
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="no file of tensors"):
        ResNet18.pretrained(file).init(torch.Generator())
    with pytest.raises(ValueError, match=r"nowhere.*cannot be read"):
        ResNet18.pretrained(tmp_path / "nowhere.pth")
