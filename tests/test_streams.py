"""Random numbers by counter, beside the same arithmetic in Python's own whole numbers."""

import numpy as np
import torch

from grokbook import streams
from grokbook.streams import Stream, keys

ALL = 2**64


def plain_hash(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % ALL
    return z ^ (z >> 31)


def plain_bits(key, step, count):
    key = plain_hash((key + step * 0x9E3779B97F4A7C15) % ALL)
    lanes = []
    for place in range(1, count // 2 + 2):
        hashed = plain_hash((key + place * 0x9E3779B97F4A7C15) % ALL)
        lanes += [hashed % 2**32, hashed >> 32]
    return [lane - 2**32 if lane >= 2**31 else lane for lane in lanes[:count]]


def stream(step=7, seeds=(0, 3), purpose="dropout"):
    return Stream(torch.from_numpy(keys(seeds, purpose)), step)


def test_bits_are_those_of_splitmix_member_by_member():
    own = keys((0, 3), "dropout").view(np.uint64)[:, 0].tolist()
    for step in (0, 7, 2**40 + 1):
        assert stream(step).bits(9).tolist() == [plain_bits(key, step, 9) for key in own]


def test_numbers_do_not_depend_on_the_pieces_they_are_made_in(monkeypatch):
    whole = stream().bits(1001)
    monkeypatch.setattr(streams, "CHUNK", 64)
    assert torch.equal(stream().bits(1001), whole)
    pieces = stream()
    assert torch.equal(torch.cat([pieces.bits(400), pieces.bits(601)], 1), whole)


def test_a_step_on_the_device_gives_the_numbers_of_that_step():
    assert torch.equal(stream(torch.tensor(123_456.0)).bits(10), stream(123_456).bits(10))


def test_steps_seeds_and_purposes_share_no_numbers():
    streams_ = [stream(1), stream(2), stream(1, (7, 8)), stream(1, purpose="update_noise")]
    seen = np.concatenate([one.bits(1000).numpy().ravel() for one in streams_])
    assert len(np.unique(seen)) > len(seen) - 10  # of 8,000 in 2**32, two meet now and then


def test_each_number_is_kept_with_its_probability_and_by_itself():
    kept = stream().kept((400, 500), 0.1).double()
    assert kept.shape == (2, 400, 500)
    assert abs(kept.mean() - 0.9) < 5 * (0.09 / kept.numel()) ** 0.5
    both = (kept[:, :, 1:] * kept[:, :, :-1]).mean(), (kept[:, 1:] * kept[:, :-1]).mean(), (kept[0] * kept[1]).mean()
    for share in both:
        assert abs(share - 0.81) < 5 * (0.81 * 0.19 / 200_000) ** 0.5


def test_normal_numbers_are_normal_and_the_same_in_both_precisions():
    found = stream().normal((501, 499), torch.zeros(1, dtype=torch.float64))
    n = found.numel()
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(found.pow(power).mean() - moment) < 5 * (variance / n) ** 0.5
    assert abs((found[0] * found[1]).mean()) < 5 * (2 / n) ** 0.5
    single = stream().normal((501, 499), torch.zeros(1))
    torch.testing.assert_close(single.double(), found, rtol=1e-5, atol=1e-5)
