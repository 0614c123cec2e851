import gzip
import json

import numpy as np
import pytest

from grokbook.book import parameters
from grokbook.chapters.liu import Settings, images, pictures
from grokbook.chapters.liu.pictures import MNIST, ImageTask
from grokbook.sizes import size_of
from grokbook.train import runner
from grokbook.train.experiment import describe
from grokbook.train.workers import TrainingFailed


def write_mnist(folder, compress=False):
    """Four files of the right size: zeros with a label in the corner."""
    for pixels, labels, count in MNIST.values():
        y = np.arange(count, dtype=np.uint8) % 10
        x = np.zeros((count, 28, 28), np.uint8)
        x[:, 0, 0] = 25 * y
        for name, values in ((pixels, x), (labels, y)):
            header = np.array([0x800 + values.ndim, *values.shape], ">u4").tobytes()
            content = header + values.tobytes()
            path = folder / (name + ".gz" if compress else name)
            path.write_bytes(gzip.compress(content, 1) if compress else content)
    return str(folder)


def test_digits_are_whole_and_split_for_good():
    task = ImageTask(200)
    x, y = task.table()
    assert x.shape == (1200, 64) and x.min() == 0 and x.max() == 1 and set(y.tolist()) == set(range(10))
    assert task.in_train(3).sum() == 200
    more, _ = ImageTask(797).table()
    assert np.array_equal(more[:200], x[:200]) and np.array_equal(more[-1000:], x[-1000:])


@pytest.mark.parametrize("compress", [False, True])
def test_mnist_is_read_from_a_folder_that_is_no_part_of_the_recipe(tmp_path, compress):
    task = ImageTask(1000, "mnist", write_mnist(tmp_path, compress))
    x, y = task.table()
    assert x.shape == (11_000, 784) and y[:12].tolist() == [*range(10), 0, 1]
    np.testing.assert_allclose(x[3, 0], 75 / 255)
    assert str(tmp_path) not in json.dumps(describe(task))


def test_a_folder_that_is_not_mnist_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "HOME", tmp_path / "_mnist")
    with pytest.raises(ValueError, match="_mnist in this checkout, or mnist_dir: no such folder"):
        ImageTask(10, "mnist").table()
    with pytest.raises(ValueError, match="no such folder"):
        ImageTask(10, "mnist", str(tmp_path / "nowhere")).table()
    with pytest.raises(ValueError, match="train-images-idx3-ubyte is missing"):
        ImageTask(10, "mnist", str(tmp_path)).table()
    folder = tmp_path / "cut"
    folder.mkdir()
    write_mnist(folder)
    path = folder / "t10k-labels-idx1-ubyte"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte has another header or length"):
        ImageTask(10, "mnist", str(folder)).table()
    folder = tmp_path / "other"
    folder.mkdir()
    write_mnist(folder)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"\0" * len(whole))
    with pytest.raises(ValueError, match="another header"):
        ImageTask(10, "mnist", str(folder)).table()


def test_a_damaged_archive_is_refused(tmp_path):
    write_mnist(tmp_path, compress=True)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:10] + b"\xff" * 50)
    with pytest.raises(ValueError, match=r"idx1-ubyte\.gz cannot be read"):
        ImageTask(10, "mnist", str(tmp_path)).table()


@pytest.mark.parametrize(
    "settings, words",
    [((0,), "train_size = 0"), ((798,), "between 1 and the 797"), ((5, "cifar"), "'digits', 'mnist'")],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        ImageTask(*settings)


def test_where_mnist_lies_makes_no_experiment_smaller(tmp_path):
    elsewhere = Settings(mnist_dir=write_mnist(tmp_path))
    wanted, found = images.image_sizes(Settings()), images.image_sizes(elsewhere, image_seeds=1)
    assert wanted.hash == images.image_sizes(elsewhere).hash
    assert size_of(wanted, found) == "fewer seeds"


def test_a_relative_folder_is_one_from_where_it_was_asked_for(tmp_path, monkeypatch):
    folder = tmp_path / "pictures"
    folder.mkdir()
    write_mnist(folder)
    monkeypatch.chdir(tmp_path)
    assert parameters.resolve("liu", {"mnist_dir": "pictures"}) == {"mnist_dir": str(folder)}
    with pytest.raises(ValueError, match="mnist_dir = 'elsewhere': no such folder"):
        parameters.resolve("liu", {"mnist_dir": "elsewhere"})


def test_a_training_without_its_images_is_refused_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "HOME", tmp_path / "_mnist")
    with pytest.raises(TrainingFailed, match=r"^liu/image_curves: _mnist in this checkout.* MNIST is needed$"):
        runner.train(images.image_curves(Settings()), out=tmp_path / "out", anew=True)
