"""The pictures of docs/gallery.md, drawn by the code on that page: each block that a picture
follows, once for light and once for dark pages.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
PAGE = (HERE.parent / "gallery.md").read_text()
BLOCKS = re.findall(
    r"```python\n(.*?)```\n\n!\[[^]]*\]\(figures/(gallery_\w+)_light", PAGE, flags=re.DOTALL
)

for shade, style in (("light", "default"), ("dark", "dark_background")):
    names = {}
    with tempfile.TemporaryDirectory() as folder, plt.style.context(style):
        plt.rcParams.update({"svg.hashsalt": "databanzhaf", "font.size": 10})
        os.chdir(folder)
        for code, name in BLOCKS:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, name, "exec"), names)
            path = HERE / f"{name}_{shade}.svg"
            figure = names["ax"].figure
            figure.savefig(path, metadata={"Date": None}, transparent=True)
            plt.close(figure)
            print(f"Written: {path.name}, {path.stat().st_size / 1024:.0f} KiB")
        os.chdir(HERE)
