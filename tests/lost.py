"""What a worker does that loses its device; by itself, for every fresh process imports the module of what it runs."""


def once(path):
    """The first process loses its device, a fresh one does not."""
    if not path.exists():
        path.write_text("")
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be ...")
    return "done"


def always():
    raise RuntimeError("CUDA error: unspecified launch failure")
