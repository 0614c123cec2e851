"""Records: the labelled outcome of an experiment, one NetCDF file each, that can be trusted or says why not."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import platform
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import grokbook
from grokbook import session
from grokbook.train import say
from grokbook.train.experiment import Experiment, coordinates, difference, hash_of

FORMAT = {  # what NetCDF itself writes beside our attributes
    "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties",
    "_FillValue",
}  # fmt: skip
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."  # how NetCDF marks the scale of one
OTHER = "_nc4_non_coord_"  # NetCDF's, before the name of a variable that is called as a dimension it is not along
SCHEMA = 2  # the checksums of 1 left attributes out: they could be edited, and are read no more
ROOT = Path(grokbook.__file__).resolve().parent.parent
SNAPSHOT_BITS = 11  # of mantissa, three decimal digits: they halve a file, and snapshots are drawn, not trained on
PLACE = ("device", "machine", "torch", "products")  # what decides rounding; the last is the library of products
FULL_DISK_SECONDS = 10.0  # between two tries to write to a full disk

NAMES = {  # of what any record may hold; results/README.md tells of the rest, too
    "train_loss": "mean loss over the training samples",
    "test_loss": "mean loss over the held-out samples",
    "train_accuracy": "accuracy on the training samples",
    "test_accuracy": "accuracy on the held-out samples",
    "total_norm": "norm of all parameters",
    "weight_norm_": "norm of {}",
    "gradient_norm_": "norm of the training loss's gradient, {}",
    "stopped_at": "step at which the run ended",
    "diverged_at": "first evaluation at which the loss was not finite; missing if never",
    "snapshot_step": "step at which a snapshot was taken",
    "reached_": "first step looked at with the threshold of {} reached; missing if never",
}
OF_STEPS = ("stopped_at", "diverged_at", "snapshot_step", "reached_")  # counted in them; all others have no unit


class DamagedRecord(Exception):
    """A file that is no record of ours, or no longer the one that was written."""


def cache_folder() -> Path:
    """Where records trained here are kept: where the session says, in a checkout ``_cache``, else the user's cache."""
    if chosen := session.current().cache:
        return Path(chosen)
    if (ROOT / "_toc.yml").exists():
        return ROOT / "_cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "grokbook"


def stored_path(experiment: Experiment, folder: Path | None = None) -> Path:
    """Where the record of an experiment lies in a folder of records; None is that of the committed ones."""
    suffix = "" if experiment.scale == "full" else f"-{experiment.scale}"
    return (folder or ROOT / "results") / f"{experiment.name}{suffix}.nc"


def cached_path(experiment: Experiment) -> Path:
    """Where the record of an experiment that was trained here lies."""
    return cache_folder() / experiment.name / f"{experiment.hash}.nc"


def assemble(
    experiment: Experiment, steps: NDArray[np.int64], variables: Mapping[str, Any], provenance: Mapping[str, Any]
) -> xr.Dataset:
    """A record from its parts: recipe coordinates on ``run``, units and long names, recipe and provenance."""
    record = xr.Dataset(dict(variables), {"step": ("step", steps, {"units": "optimizer steps"})})
    record = record.assign_coords({name: ("run", values) for name, values in coordinates(experiment.runs).items()})
    return named(record).assign_attrs(
        schema=SCHEMA,
        experiment=experiment.name,
        scale=experiment.scale,
        hash=experiment.hash,
        recipe=json.dumps(experiment.recipe, sort_keys=True),
        grokbook=grokbook.__version__,
        commit=commit(),
        numpy=np.__version__,
        **provenance,
    )


def named(record: xr.Dataset) -> xr.Dataset:
    """A record with the long names and units of today's ``NAMES``, in place."""
    for name, variable in record.data_vars.items():
        key = next((one for one in NAMES if name == one or (one[-1] == "_" and str(name).startswith(one))), "")
        told = {"long_name": NAMES[key].format(str(name).removeprefix(key))} if key else {}
        variable.attrs = told | ({"units": "optimizer steps"} if key in OF_STEPS else {})
    return record


def merge(experiment: Experiment, parts: Sequence[xr.Dataset], places: Sequence[Sequence[int]]) -> xr.Dataset:
    """One record from the records of an experiment's shards; ``places`` are their runs' positions in it.

    What was kept of smaller networks is filled up to the size of the largest, with nan.
    """
    own = [bare(part) for part in parts]
    for dim in {dim for part in own for dim in part.sizes} - {"run", "step"}:
        most = max(part.sizes.get(dim, 0) for part in own)
        own = [
            part.pad({dim: (0, most - part.sizes[dim])}) if 0 < part.sizes.get(dim, 0) < most else part for part in own
        ]
    data = xr.concat(own, "run", join="outer", data_vars="all", coords="minimal", compat="override")
    data = data.sortby("step").isel(run=np.argsort(np.concatenate(places)))
    provenance: dict[str, Any] = {
        key: ", ".join(sorted({one for part in parts for one in place_of(part)[key].split(", ")})) for key in PLACE
    }
    provenance["wall_seconds"] = float(sum(part.attrs["wall_seconds"] for part in parts))
    provenance["started_at"] = min(part.attrs["started_at"] for part in parts)
    provenance["resumed_at"] = "; ".join(sorted({part.attrs["resumed_at"] for part in parts}))
    variables = {str(name): (variable.dims, variable.values) for name, variable in data.data_vars.items()}
    made = ", ".join(sorted({part.attrs["commit"] for part in parts}))
    return assemble(experiment, data.step.values, variables, provenance).assign_attrs(commit=made)


def bare(record: xr.Dataset) -> xr.Dataset:
    """A record without the coordinates that repeat its recipe, which take most of the time to write a short one."""
    return record.drop_vars([name for name in record.coords if name != "step"])


def place_of(record: xr.Dataset) -> dict[str, str]:
    """What decided the rounding of a record's numbers; records that name no library were made with the default."""
    return {key: str({"products": "default", **record.attrs}[key]) for key in PLACE}


def save(record: xr.Dataset, path: str | Path) -> None:
    """Write a record, whole or not at all; raises what ``write_whole`` does."""
    record = record.copy()
    for name, variable in record.data_vars.items():
        if variable.dtype.kind == "f" and "run" in variable.dims:
            values = variable.values.astype(np.float32)
            if "snapshot" in variable.dims and variable.ndim > 2:
                values = round_mantissa(values, SNAPSHOT_BITS)
            record[name] = variable.copy(data=values)
    record.attrs["checksum"] = checksum(record)
    write_whole(Path(path), _netcdf(record))


def _netcdf(record: xr.Dataset) -> bytes:
    """A record as a NetCDF file, an HDF5 file whose dimensions are scales: xarray's writer takes ten times as long.

    In memory: on a full disk the HDF5 library does not raise an error but takes the process down.
    """
    import h5py

    # compact headers (HDF5 1.10, of 2016) and one chunk an array, which is read whole anyway: files a fifth smaller
    content, indexes, layout = io.BytesIO(), set(record.indexes), ("v110", "v110")
    names = {name: OTHER * (name in record.sizes and name not in indexes) + str(name) for name in record.variables}
    with h5py.File(content, "w", libver=layout, track_order=True) as file:
        for name, one in record.variables.items():
            values, how = one.values, {}
            if values.dtype.kind in "fi" and values.size > 64:
                how = {"compression": "gzip", "compression_opts": 6, "shuffle": True, "chunks": values.shape}
            if values.dtype.kind in "OUS":
                values, how = values.astype(object), {"dtype": h5py.string_dtype()}
            made = file.create_dataset(names[name], data=values, **how)
            made.attrs.update(one.attrs)
        for dim, size in record.sizes.items():
            scale = file[dim] if dim in indexes else file.create_dataset(dim, (size,), ">f4")
            scale.make_scale(dim if dim in indexes else f"{NO_VARIABLE}{size:10d}")
            for name, one in record.variables.items():
                if dim in one.dims and name not in indexes:
                    file[names[name]].dims[one.dims.index(dim)].attach_scale(scale)
        file.attrs.update({"coordinates": " ".join(sorted({*map(str, record.coords)} - indexes)), **record.attrs})
    return content.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all: under another name first. An OSError names it, and leaves nothing behind."""
    scratch = path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(scratch, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):  # where nothing can be written nothing is left either
            scratch.unlink(missing_ok=True)


def patiently(write: Callable[[], None], stop: Callable[[], bool] = lambda: False) -> None:
    """Call ``write``, again while the disk is full: what was trained waits in memory, until ``stop`` says so.

    Raises any other OSError, and KeyboardInterrupt at ``stop``.
    """
    told = False
    while True:
        try:
            write()
            break
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            if not told:
                say(f"no space left for {error.filename}; training pauses until there is some")
            told, again = True, time.monotonic() + FULL_DISK_SECONDS
            while time.monotonic() < again:
                if stop():
                    raise KeyboardInterrupt from None
                time.sleep(min(0.2, FULL_DISK_SECONDS))
    if told:
        say("there is space again; training goes on")


def heading(path: Path) -> dict[str, Any]:
    """What a record says of itself: its attributes, read without its numbers.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file is truncated or not a record.
        OSError: what is there cannot be read, which says nothing about its contents.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    if not path.is_file():  # reading from a pipe or device would not end
        raise OSError(errno.EEXIST, "it is no regular file", str(path))
    with _opened(path) as file:
        attributes = _attributes(file)
    if (schema := attributes.get("schema")) != SCHEMA:
        raise DamagedRecord(f"{path}: written in schema {schema}, this version reads {SCHEMA}")
    try:
        float(attributes["wall_seconds"])
        if attributes["hash"] != hash_of(json.loads(attributes["recipe"])) or "checksum" not in attributes:
            raise ValueError("its hash is not that of its recipe, or it has no checksum")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedRecord(f"{path}: its attributes are no record's ({error})") from None
    return attributes


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file that cannot be read, an OSError as any, is told from one that is no record, whatever its reader says."""
    import h5py

    try:
        with h5py.File(path) as file:
            yield file
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        raise DamagedRecord(f"{path}: not a readable NetCDF file ({type(error).__name__})") from error


def load(path: str | Path) -> xr.Dataset:
    """Read a record and check that it is whole; raises what ``heading`` does, and of an altered one DamagedRecord."""
    heading(Path(path))
    return _whole(Path(path))


def _whole(path: Path) -> xr.Dataset:
    """The same of a record whose heading was looked at."""
    with _opened(path) as file:
        record = _dataset(file)
    if record.attrs["checksum"] != checksum(record):
        raise DamagedRecord(f"{path}: its contents do not match its checksum")
    return record


def _dataset(file: Any) -> xr.Dataset:
    """An open record, as xarray reads it: that asks for every dimension a dozen times, and takes ten times as long."""
    about = _attributes(file)
    beside = set(about.pop("coordinates", "").split())
    variables = {}
    for name, one in file.items():
        own = _attributes(one)
        if one.is_scale and one.attrs["NAME"].startswith(NO_VARIABLE.encode()):
            continue
        values = one[()] if one.dtype.kind != "O" else one.asstr()[()].astype(str)
        dims = (name,) if one.is_scale else tuple(axis[0].name.rpartition("/")[2] for axis in one.dims)
        beside |= set(own.pop("coordinates", "").split())
        variables[name.removeprefix(OTHER)] = dims, values.astype(own.pop("dtype", values.dtype)), own
    return xr.Dataset(variables, attrs=about).set_coords(beside)


def _attributes(one: Any) -> dict[str, Any]:
    """Those that a record's writer gave, without those of the file format."""
    plain = {key: one.attrs[key] for key in one.attrs if key not in FORMAT}
    return {key: value.item() if getattr(value, "size", None) == 1 else value for key, value in plain.items()}


def belongs(experiment: Experiment, path: Path) -> dict[str, Any]:
    """The heading of the record at ``path``, if it is this experiment's; its numbers are not looked at.

    Raises what ``heading`` does, and for another recipe LookupError, with the first field that differs.
    """
    attributes = heading(path)
    if attributes["hash"] != experiment.hash:
        apart = difference(experiment.recipe, json.loads(attributes["recipe"]))
        raise LookupError(apart or "nothing: the recipes agree")
    return attributes


def holders(experiment: Experiment, out: Path | None = None) -> dict[int, list[tuple[Path, int]]]:
    """Where other records have runs of an experiment: by their positions, records and the positions in them.

    Records of fewer seeds, of a stand-in or at other parameters, committed, cached or in ``out``, whose recipe differs
    in the list of runs alone, if in anything. What is there already is none of them. Only headings are read.
    """
    wanted, found = experiment.recipe, dict[int, list[tuple[Path, int]]]()
    own = stored_path(experiment, out) if out else cached_path(experiment)
    scales = [replace(experiment, scale=scale) for scale in ("full", "reduced")]
    paths = [stored_path(one, folder) for folder in (None, out) for one in scales]
    for path in dict.fromkeys([*paths, *sorted((cache_folder() / experiment.name).glob("*.nc"))]):
        with contextlib.suppress(OSError, DamagedRecord):
            there = json.loads(heading(path)["recipe"])
            if (there != wanted or path != own) and {**there, "runs": []} == {**wanted, "runs": []}:
                for i, run in enumerate(wanted["runs"]):
                    if run in there["runs"]:
                        found.setdefault(i, []).append((path, there["runs"].index(run)))
    return found


def held(experiment: Experiment, out: Path | None = None) -> dict[int, xr.Dataset]:
    """The runs of an experiment that other records have (see ``holders``), by position, each as a record of one run."""
    found, places = dict[int, xr.Dataset](), holders(experiment, out)
    for path in dict.fromkeys(path for own in places.values() for path, _ in own):
        rows = {i: at for i, own in places.items() if i not in found for there, at in own if there == path}
        if not rows:
            continue
        with contextlib.suppress(OSError, DamagedRecord):
            record = load(path)
            record.attrs["wall_seconds"] /= record.sizes["run"]
            for i, at in rows.items():
                row = record.isel(run=[at])
                own = np.isin(row.step, experiment.schedule.steps(experiment.runs[i].steps))
                found[i] = unpadded(row.isel(step=np.flatnonzero(own & (row.step <= row.stopped_at[0]))))
    return found


def unpadded(row: xr.Dataset) -> xr.Dataset:
    """A run without what ``merge`` fills up: nan at the end of a dimension, in everything that is along it."""
    for dim in set(row.sizes) - {"run", "step", "snapshot"}:
        along = [one.notnull().any({*one.dims} - {dim}) for one in row.data_vars.values() if dim in one.dims]
        row = row.isel({dim: slice(np.flatnonzero(np.any(along, 0)).max(initial=-1) + 1 or None)})
    return row


def find(experiment: Experiment, path: Path) -> xr.Dataset:
    """The record at ``path``, if it is this experiment's and whole; raises what ``belongs`` and ``load`` do."""
    belongs(experiment, path)
    record = named(_whole(path)).assign_attrs(scale=experiment.scale)
    asked = {name: xr.Variable("run", values) for name, values in coordinates(experiment.runs).items()}
    for name, values in asked.items():
        if name != "label" and name in record.coords and not values.equals(record[name].variable):
            raise DamagedRecord(f"{path}: its runs' {name} is not what its recipe says")
    # Labels are no part of the recipe: a record keeps its numbers when they change, and takes the new ones.
    return record.assign_coords(asked)


def select(record: xr.Dataset, **wanted: object) -> xr.Dataset:
    """The runs whose recipe has these values, for example ``label="GD"``; numbers are compared to nine digits."""
    keep = np.ones(record.sizes["run"], bool)
    for name, value in wanted.items():
        own = record[name].values
        keep &= np.isclose(own.astype(float), value, rtol=1e-9, atol=0) if isinstance(value, float) else own == value
    return record.isel(run=np.flatnonzero(keep))


def conditions(record: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """(label, its runs) in the order in which labels first occur."""
    for label in dict.fromkeys(record.label.values.tolist()):
        yield label, select(record, label=label)


def checksum(record: xr.Dataset) -> str:
    """SHA-256 over names, dimensions, attributes and contents of every variable, and the attributes of all."""
    digest = hashlib.sha256()

    def take(attributes: Mapping[Any, Any]) -> None:
        told = {str(key): str(value) for key, value in attributes.items() if key != "checksum"}
        digest.update(repr(sorted(told.items())).encode() if told else b"")

    take(record.attrs)
    for name in sorted(map(str, record.variables)):
        variable = record[name]
        values = variable.values
        digest.update(repr((name, variable.dims, values.shape)).encode())
        # What a round trip through a file keeps: little-endian, and one kind of nan.
        if values.dtype.kind in "OUS":
            digest.update("\0".join(map(str, values.ravel())).encode())
        elif values.dtype.kind == "f":
            digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())
        else:
            digest.update(values.astype("<i8").tobytes())
        take(variable.attrs)
    return digest.hexdigest()


def round_mantissa(values: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Round float32 numbers to ``bits`` of mantissa, to nearest, so that the rest compresses away."""
    drop = 23 - bits
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (raw + np.uint32(1 << (drop - 1))) & np.uint32(0xFFFFFFFF ^ ((1 << drop) - 1))
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit this code stands at, with ``+`` if the working tree differs; empty outside a checkout."""
    if (said := ROOT / "COMMIT").exists():  # in a copy of a checkout that tools/gpu_pack.sh made
        return said.read_text().strip()

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()

    with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
        return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", "grokbook"))
    return ""


@lru_cache(maxsize=1)
def processor() -> str:
    """What this machine's processor calls itself, with family and model, which a bare name may leave open."""
    with contextlib.suppress(OSError, KeyError):  # another system, or another kind of processor
        told = dict(re.findall(r"(.+?)\s*: (.*)", Path("/proc/cpuinfo").read_text().split("\n\n")[0]))
        return f"{told['model name']} ({told['cpu family']}/{told['model']})"
    return platform.processor() or platform.machine()
