"""The documentation as it was built, in Debian's Chromium: wide and narrow, light and dark.

Needs the extras ``dev`` and ``docs`` besides what .ci/install-tools installs.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import axe_playwright_python
import pytest
import yaml
from container_tools import need, run
from matplotlib.image import imread
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, sync_playwright

from tests.conftest import ROOT

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
PAGES = (
    *("", "tutorial/", "how-it-works/", "glossary/", "comparison/", "projects/", "when-a-build-fails/", "contract/"),
    *("tasks/", "tasks/add-a-package/", "testing-images/", "running/", "stacks/", "site-profile-fields/", "options/"),
    *("explain/", "reference/errors/exit-code-7/", "reference/commands/build/", "reference/sites/polaris/"),
    "reference/fields/stack/",
)
WIDE, LAPTOP, NARROW = 1400, 1280, 390
STILL = "*, *::before, *::after { transition: none !important; animation: none !important }"
VIOLATIONS = """rules => axe.run(document, {resultTypes: ["violations"], ...rules}).then(found => found.violations
  .filter(each => ["serious", "critical"].includes(each.impact) || each.id == "empty-table-header")
  .flatMap(each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 150)}: ${node.failureSummary}`)))"""
CONTRAST = {"runOnly": ["color-contrast"]}
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = "[...document.querySelectorAll('pre code')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)"
SEARCHES = Path(__file__).with_name("searches.yaml")
"""What people paste or type, from public threads, and the pages that answer it."""
FOUND = """async queries => {
  const config = JSON.parse(document.querySelector("#__config").textContent);
  const base = new URL(config.base, location);
  const index = await (await fetch(new URL("search/search_index.json", base))).json();
  const worker = new Worker(new URL(config.search, base));
  const answer = message => new Promise(done => {
    worker.onmessage = event => done(event.data);
    worker.postMessage(message);
  });
  await answer({type: 0, data: {...index, options: {suggest: false}}});
  const found = [];
  for (const query of queries) {
    found.push((await answer({type: 2, data: query})).data.items.map(pages => pages[0].location.split("#")[0]));
  }
  return found;
}"""
"""The pages that the theme's own search finds for each query, the best first."""
NOT_LOADED = "[...document.images].filter(e => !e.complete || !e.naturalWidth).map(e => e.src)"


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the built site is served."""
    site = tmp_path_factory.mktemp("documentation")
    run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", site], cwd=ROOT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need("chromium", path=os.environ["PATH"])
    with sync_playwright() as driver:
        # Chromium's own sandbox does not start for root.
        chromium = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that fails the test if it reports an error."""
    errors: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    context = browser.new_context(base_url=address, permissions=["clipboard-read", "clipboard-write"])
    with context, context.new_page() as page:
        page.on("console", heard)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
    assert errors == []


def opened(page: Page, path: str, width: int = WIDE) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path, wait_until="load")


def darken(page: Page) -> None:
    page.get_by_title("Dark").click()
    assert page.locator("body[data-md-color-scheme=slate]").count() == 1


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_page_can_be_read_by_everybody(page: Page, path: str, width: int) -> None:
    opened(page, path, width)
    page.add_style_tag(content=STILL)
    page.evaluate(AXE)
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(NOT_LOADED) == []
    assert page.evaluate(VIOLATIONS, {}) == []
    darken(page)
    assert page.evaluate(VIOLATIONS, CONTRAST) == []
    page.set_viewport_size({"width": min(width, LAPTOP), "height": 900})
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("path", ["explain/", "projects/", "tutorial/"])
def test_copied_of_a_terminal_are_its_commands_alone(page: Page, path: str) -> None:
    opened(page, path)
    blocks = page.locator("pre:has(> code)").all()
    assert blocks
    for block in blocks:
        shown = (block.locator("> code").text_content() or "").rstrip()
        block.locator("button[title='Copy to clipboard'], .md-code__button[data-md-type=copy]").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        commands = [line[2:] for line in shown.splitlines() if line.startswith("$ ")]
        assert copied == ("\n".join(commands) if commands else shown)


def lightness(picture: Locator) -> float:
    return float(imread(io.BytesIO(picture.screenshot()))[..., :3].mean())


@pytest.mark.parametrize("path", ["how-it-works/", "architecture/"])
def test_pictures_are_dark_on_dark_pages(page: Page, path: str) -> None:
    opened(page, path)
    pictures = page.locator("article img").all()
    assert pictures
    light = [lightness(each) for each in pictures]
    darken(page)
    dark = [lightness(each) for each in pictures]
    assert min(light) > 0.7
    assert max(dark) < 0.4


def test_what_people_paste_finds_its_page(page: Page) -> None:
    asked = yaml.safe_load(SEARCHES.read_text("utf-8"))
    opened(page, "")
    found = page.evaluate(FOUND, [each["query"] for each in asked])
    missed = [
        (each["query"], pages[:3])
        for each, pages in zip(asked, found, strict=True)
        if not set(each["pages"]) & set(pages[:3])
    ]
    assert len(asked) == 60
    assert len(missed) <= 6, missed
