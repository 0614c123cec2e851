"""Write into the checkout where it is published: buttons to repository, Binder and Colab, absolute addresses, citation.

usage: python tools/address.py https://github.com/OWNER/NAME https://OWNER.github.io/NAME
"""

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

root = Path(__file__).resolve().parents[1]
repository, pages = (address.rstrip("/") for address in sys.argv[1:])
BUTTONS = f"""
repository: {{url: {repository}, branch: published}}
launch_buttons:
  notebook_interface: jupyterlab
  binderhub_url: https://mybinder.org
  colab_url: https://colab.research.google.com
"""
COLAB = f"""import sys

if "google.colab" in sys.modules:  # Colab opens this file alone: fetch the others, and what drawing needs
    !git clone --quiet --depth 1 --branch published {repository} grokking-book
    %cd -q grokking-book
    %pip install --quiet h5netcdf h5py xarray seaborn myst-nb"""


def change(name: str, *changes: tuple[str, str]) -> None:
    """Replace text in a file; what is not there to be replaced is an error."""
    text = (root / name).read_text(encoding="utf-8")
    for old, new in changes:
        if old not in text:
            sys.exit(f"tools/address.py: {name} does not hold {old!r}")
        text = text.replace(old, new)
    (root / name).write_text(text, encoding="utf-8")


change(
    "_config.yml",
    ("use_repository_button: false", f"use_repository_button: true\n  baseurl: {pages}/"),
    ("../_static/extra/card.png", f"{pages}/_static/extra/card.png"),
    ("\nexecute:", f"{BUTTONS}\nexecute:"),
)
change("_assets/extra/404.html", ('href="/"', f'href="{urlsplit(pages).path}/"'))
change("CITATION.cff", ("\nlicense:", f"\nrepository-code: {repository}\nurl: {pages}/\nlicense:"))
for path in (root / "book").glob("*.ipynb"):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell = {"cell_type": "code", "execution_count": None, "metadata": {"tags": ["remove-cell"]}, "outputs": []}
    notebook["cells"].insert(1, {**cell, "id": "colab", "source": COLAB.splitlines(keepends=True)})
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
