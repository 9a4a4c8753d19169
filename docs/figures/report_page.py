"""Pictures of the report of the example table, light and dark; needs Chromium (CHROMIUM,
/usr/bin/chromium by default) and playwright.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

OUT = {
    "light": Path(__file__).with_name("report_page.png"),
    "dark": Path(__file__).with_name("report_page_dark.png"),
}
COMMANDS = ("example", "value suppliers.csv --target bought --id id --drop supplier")

with tempfile.TemporaryDirectory() as folder:
    for words in COMMANDS:
        subprocess.run(
            [sys.executable, "-m", "databanzhaf", *words.split()],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        for scheme, path in OUT.items():
            page = browser.new_page(viewport={"width": 1000, "height": 1150}, color_scheme=scheme)
            page.goto((Path(folder) / "runs/suppliers/report.html").as_uri())
            page.wait_for_selector("html[data-ready=yes]")
            page.screenshot(path=path)
            print(f"Written: {path.name}, {path.stat().st_size / 1024:.0f} KiB")
        browser.close()
