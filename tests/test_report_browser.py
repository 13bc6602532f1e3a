"""The page in a real browser: quiet, inert, as wide as the screen, in both themes.

Skipped where there is no Chromium with its driver; the reason names what is missing.
Longer than most files: one browser and its pages serve every test.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import report_examples as examples
import test_logs_pages_again as of_logs
import test_report_paper as report_paper
from records import Study, good_answer, lognormal
from replaying import generated, written
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.logs.judge import judge_log
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find
from searchbench.record import Record, open_record
from searchbench.report import write_comparison
from searchbench.report.document.assemble import document
from searchbench.report.document.logs import of_log
from searchbench.report.document.logs_again import of_against
from searchbench.report.page import page as page_of

SECTIONS = [
    "answer",
    "throughput",
    "latency",
    "warmup",
    "agreement",
    "resources",
    "places",
    "machine",
    "findings",
    "details",
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of pages: usual, of twelve treatments, hostile, and of each other measure.

    "capacity" is of three configurations with two promises, "systems" of three that differ by name;
    in both one side or more is open. "log", "cut" and "against" are of a log.
    """
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, n, hostile in (("plain", 4, False), ("twelve", 12, False), ("hostile", 12, True)):
        judged = examples.judgement(n, hostile=hostile)
        record = examples.record(judged, load="open", hostile=hostile)
        path = folder / f"{name}.html"
        path.write_text(page_of(document(record, judged)), "utf-8")
        made[name] = path.as_uri()
    systems = [
        examples.Queue(name, name, {"system": name}, most)
        for name, most in (("sphinx", 412.0), ("groonga with a long name", 90.0), ("es", 1440.0))
    ]
    for name, judged in (
        ("sweep", examples.sweep()),
        ("capacity", examples.searched()),
        ("systems", examples.searched(systems)),
    ):
        record = examples.driven(judged)
        path = folder / f"{name}.html"
        path.write_text(page_of(document(record, judged)), "utf-8")
        made[name] = path.as_uri()
    (folder / "big.html").write_text(page_of(report_paper.big_document()), "utf-8")
    made["big"] = (folder / "big.html").as_uri()
    a, b, *same, b_again, b_once_more = two_versions(folder)
    found = compare_records(a, b, 0.05, same, [b_again, b_once_more])
    made["records"] = write_comparison(found, a, b, folder / "records.html").as_uri()
    made["cut"] = (folder / "cut.html").as_uri()
    log, out = generated(folder), folder / "cut.jsonl"
    written(log, out, "--cut", "900", "--page", str(folder / "cut.html"))
    counts = count(find([log]), Options())
    names = sorted({text for kind, text in zip(counts.texts("groups", "kind"),
                                               counts.texts("groups", "name"), strict=True)
                    if kind == "index"})  # fmt: skip
    found_in_log = judge_log(
        counts, sizes={name: 10 ** (5 + i % 4) for i, name in enumerate(names)}
    )
    (folder / "log.html").write_text(page_of(of_log(found_in_log)), "utf-8")
    made["log"] = (folder / "log.html").as_uri()
    beside = of_against(of_logs.many(12, 3), of_logs.searches_in(log), folder / "shop")
    (folder / "against.html").write_text(page_of(beside), "utf-8")
    made["against"] = (folder / "against.html").as_uri()
    return made


def two_versions(folder: Path) -> list[Record]:
    """Before, after, before again, after again. After is a third slower and answers 3 of 40
    otherwise.
    """

    def other(query: int) -> dict[str, Any]:
        found = good_answer(query)
        if query in (3, 17):
            return found | {"ids": found["ids"][::-1] if query == 3 else [*found["ids"][1:], "new"]}
        return found | {"total": 0, "ids": [], "scores": []} if query == 30 else found

    before = [(slower, "1.0", good_answer) for slower in (1.0, 1.01, 0.995, 1.005)]
    after = [(slower, "2.0", other) for slower in (1.33, 1.325, 1.335)]
    runs = []
    for i, (slower, version, answer) in enumerate([before[0], after[0], *before[1:], *after[1:]]):
        study = Study(blocks=3, seed=i, block_noise=0.0, control=None)
        for clients in (1, 4):
            study.add(
                f"t{clients}", server=lognormal(0.004 * slower, 0.1), clients=clients, seconds=12.0,
                levels={"system": "tantivy", "load.clients": clients}, answer=answer,
                version=version, parameters={"merge_policy": f"a long name of a policy, {version}"},
            )  # fmt: skip
        runs.append(open_record(study.write(folder / f"run-{i}")))
    return runs


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


def show(browser: webdriver.Chrome, url: str, *, width: int = 1280, dark: bool = False) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})
    browser.get(url)
    browser.execute_script("try { localStorage.clear() } catch {}")
    browser.refresh()


def script(browser: webdriver.Chrome, text: str) -> Any:
    return browser.execute_script(text)


def colours(browser: webdriver.Chrome) -> tuple[str, str]:
    """The page's paper, and the colour of the first text in a figure that is seen."""
    found = script(
        browser,
        """const text = [...document.querySelectorAll("figure svg text")]
             .find(t => t.getClientRects().length);
           const paper = getComputedStyle(document.body).backgroundColor;
           return [paper, getComputedStyle(text).fill];""",
    )
    return found[0], found[1]


@pytest.mark.parametrize(
    "page", ["plain", "twelve", "hostile", "capacity", "records", "cut", "against", "log"]
)
def test_the_page_is_silent_and_asks_the_network_for_nothing(
    browser: webdriver.Chrome, pages: dict[str, str], page: str
) -> None:
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    show(browser, pages[page])
    messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    asked = {
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith("data:")} == {pages[page]}
    assert browser.get_log("browser") == []


def test_hostile_text_is_shown_and_does_nothing(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["hostile"])
    script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
    assert browser.title.startswith("<script>document.title=")
    assert script(browser, "return document.scripts.length") == 1
    assert script(browser, "return document.images.length") == 0
    handlers = """return [...document.querySelectorAll('*')].filter(e =>
        [...e.attributes].some(a => a.name.startsWith('on'))).length"""
    assert script(browser, handlers) == 0
    assert (
        script(browser, "return document.querySelectorAll('iframe,object,embed,form').length") == 0
    )
    body = script(browser, "return document.body.innerText")
    for text in examples.HOSTILE[:5]:
        assert text in body


@pytest.mark.parametrize(
    "page",
    [
        "plain",
        "twelve",
        "hostile",
        "sweep",
        "capacity",
        "systems",
        "records",
        "cut",
        "against",
        "log",
    ],
)
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_the_page_is_never_wider_than_the_screen(
    browser: webdriver.Chrome, pages: dict[str, str], page: str, width: int
) -> None:
    show(browser, pages[page], width=width)
    script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
    assert script(browser, "return document.documentElement.scrollWidth") <= width
    outside = """const most = document.documentElement.clientWidth;
        return [...document.querySelectorAll(
            'p, h1, h2, h3, figure, dl, .scroll, pre, nav a, .badge')]
          .filter(e => e.getBoundingClientRect().right > most + 1)
          .map(e => e.outerHTML.slice(0, 90))"""
    assert script(browser, outside) == []
    split = """return [...document.querySelectorAll('td bdi')].filter(
        e => e.textContent == 'Throughput' && e.getClientRects().length > 1).length"""
    assert script(browser, split) == 0, "a word that is cut within"


def test_a_wide_table_scrolls_in_its_own_box(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["plain"], width=360)
    room, whole = script(
        browser,
        "const b = document.querySelector('.scroll'); return [b.clientWidth, b.scrollWidth]",
    )
    assert whole > room


FIRST_COLUMN = """const wrong = [];
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth <= box.clientWidth + 1 || !box.getClientRects().length) continue;
      box.scrollLeft = box.scrollWidth;
      box.dispatchEvent(new Event("scroll"));
      const edge = box.getBoundingClientRect(), column = box.querySelector("th").innerText;
      for (const row of box.querySelectorAll("tr")) {
        const cell = row.cells[0], at = cell.getBoundingClientRect();
        const style = getComputedStyle(cell);
        const seen = Math.abs(at.left - edge.left) < 2 && at.width < 0.45 * edge.width;
        const opaque = !/rgba\\(.*, 0\\)|transparent/.test(style.backgroundColor);
        const line = getComputedStyle(cell, "::after");
        const drawn = line.width === "2px" && parseFloat(line.height) > 0.9 * cell.clientHeight;
        if (!seen || !opaque || !drawn) wrong.push([column, cell.innerText]);
      }
    }
    return wrong;"""


@pytest.mark.parametrize(
    "page", ["plain", "twelve", "sweep", "capacity", "records", "cut", "against", "log"]
)
def test_the_first_column_of_a_wide_table_stays_in_view_on_a_phone_with_an_edge(
    browser: webdriver.Chrome, pages: dict[str, str], page: str
) -> None:
    show(browser, pages[page], width=390)
    script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
    assert script(browser, FIRST_COLUMN) == []
    beside = """return [...document.querySelectorAll(".scroll")].filter(
        b => !b.classList.contains("scrolled") && b.scrollWidth > b.clientWidth + 1).length"""
    assert script(browser, beside) == 0


def test_both_sides_of_a_comparison_stay_in_view_on_a_phone(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["plain"], width=390)
    script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
    cells = script(
        browser,
        """const table = [...document.querySelectorAll("table")]
             .find(t => t.rows[0].cells[0].innerText == "This");
           return [...table.rows].slice(1).map(row => row.cells[0].innerText)""",
    )
    assert cells
    assert all("\nagainst " in cell for cell in cells)


def test_every_section_can_be_reached_from_the_top(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["plain"])
    links = script(browser, "return [...document.querySelectorAll('nav a')].map(a => a.hash)")
    assert links == [f"#{name}" for name in SECTIONS]
    found = script(browser, "return [...document.querySelectorAll('section')].map(s => s.id)")
    assert found == SECTIONS


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_follows_the_system_until_the_reader_chooses(
    browser: webdriver.Chrome, pages: dict[str, str], dark: bool
) -> None:
    show(browser, pages["plain"], dark=dark)
    light, night = ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    button = browser.find_element("id", "theme")
    assert button.text == "Theme: auto"
    by_system = colours(browser)
    assert by_system[0] == (night if dark else light)
    button.click()
    by_light = colours(browser)
    assert (button.text, by_light[0]) == ("Theme: light", light)
    button.click()
    by_dark = colours(browser)
    assert (button.text, by_dark[0]) == ("Theme: dark", night)
    assert by_light[1] != by_dark[1]
    assert by_system == (by_dark if dark else by_light)
    button.click()
    assert (button.text, colours(browser)) == ("Theme: auto", by_system)


def test_details_open_and_show_the_command_line(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["plain"])
    hidden = "return document.querySelector('#details').innerText.includes('searchbench-host')"
    assert not script(browser, hidden)
    for summary in browser.find_elements("css selector", "#details > details > summary")[:3]:
        browser.execute_script("arguments[0].click()", summary)
    assert script(browser, hidden)


def test_a_point_says_what_it_is_when_the_pointer_is_on_it(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["plain"])
    said = script(
        browser,
        """const figure = document.querySelector("#figure-scaling-0 .wide svg");
           figure.scrollIntoView({block: "center", behavior: "instant"});
           for (const path of figure.querySelectorAll("path")) {
             const box = path.getBoundingClientRect();
             path.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
               clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}));
             const tip = document.getElementById("tip");
             if (!tip.hidden) return tip.innerText;
           }""",
    )
    assert said.startswith("tantivy")
    assert "load.clients = " in said
    assert "/s" in said


@pytest.mark.parametrize("width", [360, 1280])
def test_figures_have_one_form_for_the_desk_and_one_for_the_phone(
    browser: webdriver.Chrome, pages: dict[str, str], width: int
) -> None:
    show(browser, pages["twelve"], width=width)
    seen = script(
        browser,
        """return [...document.querySelectorAll("figure")].map(f => [...f.querySelectorAll("svg")]
             .filter(s => s.getClientRects().length).map(s => s.parentNode.className).join())""",
    )
    assert set(seen) == {"wide" if width > 1000 else "narrow"}


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_in_figures_do_not_overlap(
    browser: webdriver.Chrome, pages: dict[str, str], width: int
) -> None:
    overlaps = """const found = [];
        for (const svg of document.querySelectorAll("figure svg")) {
          const boxes = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim() &&
            t.getClientRects().length && getComputedStyle(t).opacity !== "0")
            .map(t => [t.textContent, t.getBoundingClientRect()]);
          for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
            const [a, b] = [boxes[i][1], boxes[j][1]];
            const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (x > 2 && y > 3)
              found.push([svg.getAttribute("aria-label"), boxes[i][0], boxes[j][0]]);
          }
        }
        return found;"""
    for page in ("plain", "twelve", "sweep", "capacity", "systems", "records", "log"):
        show(browser, pages[page], width=width)
        script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
        assert script(browser, overlaps) == [], page


POINTED = """const figure = document.querySelector(arguments[0] + " .wide svg");
    figure.scrollIntoView({block: "center", behavior: "instant"});
    const found = new Set();
    for (const path of figure.querySelectorAll("path, line, rect")) {
      const box = path.getBoundingClientRect();
      path.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
        clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}));
      const tip = document.getElementById("tip");
      if (!tip.hidden) found.add(tip.innerText);
    }
    return [...found];"""


@pytest.mark.parametrize("page", ["capacity", "systems"])
@pytest.mark.parametrize("width", [390, 1280])
def test_intervals_are_seen_at_once_and_their_trials_after_a_click(
    browser: webdriver.Chrome, pages: dict[str, str], page: str, width: int
) -> None:
    show(browser, pages[page], width=width)
    rows = script(
        browser,
        """return [...document.querySelector("#answer table").rows].map(
             row => [...row.cells].map(cell => cell.innerText.split("\\n")[0]))""",
    )
    assert [len(row) for row in rows] == [3, 3, 3, 3]
    assert rows[1][1:] == ["313–326/s", "381–397/s"]
    assert rows[3][2] == "≥ 1,389/s"
    assert browser.find_element("id", "figure-capacity").is_displayed()
    curve = browser.find_element("id", "figure-capacity-0")
    assert not curve.is_displayed()
    summaries = browser.find_elements("css selector", "#capacity > details > summary")
    assert len(summaries) == 6
    browser.execute_script("arguments[0].click()", summaries[0])
    assert curve.is_displayed()


def test_every_interval_says_what_it_is_when_the_pointer_is_on_it(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    for page, names in (("capacity", ("sphinx parts=1", "sphinx parts=4")), ("systems", ("es",))):
        show(browser, pages[page])
        tips = browser.execute_script(POINTED, "#figure-capacity")
        assert len(tips) == 6, page
        for name in names:
            assert any(tip.startswith(f"{name}\np99 < 50ms: ") for tip in tips), (page, name)
        assert any(tip.endswith("p99 < 200ms, errors < 0.1%: ≥ 1,389/s") for tip in tips), page


def test_without_script_the_page_still_says_everything(
    browser: webdriver.Chrome, pages: dict[str, str], tmp_path: Path
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(pages["plain"])
        assert not browser.find_element("id", "theme").is_displayed()
        assert len(browser.find_elements("css selector", "figure svg title")) > 20
        assert browser.find_element("css selector", "#figure-latency-service").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_two_records_says_what_changed(
    browser: webdriver.Chrome, pages: dict[str, str], width: int
) -> None:
    show(browser, pages["records"], width=width)
    assert browser.find_element("css selector", "h1").text == "What changed from run-0 to run-1?"
    badge = browser.find_element("css selector", ".badge")
    assert badge.text == "Regression"
    lead = browser.find_element("css selector", "p.lead")
    assert "A regression beyond 5 %" in lead.text
    points = [one.text for one in browser.find_elements("css selector", "ul.points li")]
    assert any(
        "Of 80 answers (40 queries of each of 2 treatments), totals differ on 2" in text
        for text in points
    )
    assert badge.location["y"] < lead.location["y"] < 900, "the decision comes first"
    rows = script(
        browser,
        """return [...document.querySelector("#answer table").rows].map(
             row => [...row.cells].map(cell => cell.innerText))""",
    )
    assert rows[0][:5] == [
        *("Treatment", "First", "Second"),
        *("Rate, second over first", "Verdict"),
    ]
    for row in rows[1:]:
        assert 0.70 < float(row[3].split("×")[0]) < 0.80
        assert row[4].startswith("slower")
        assert row[5].startswith("4 and 3")
    assert "Document groups match" in browser.find_element("id", "answers").text, "without a click"
    script(browser, "for (const d of document.querySelectorAll('details')) d.open = true;")
    answers = browser.find_element("id", "answers").text
    for measure in (
        *("Total results match", "Total found match", "Top 10 match", "Document set match"),
        *("Document groups match", "Document mismatch", "Max mismatch", "Median mismatch"),
        *("Mismatch distribution", "Kendall's tau-b", "RBO by rank"),
    ):
        assert measure in answers, measure
    assert answers.index("30: word30") < answers.index("3: word3"), "the least alike comes first"
    setup = browser.find_element("id", "setup").text
    assert "a long name of a policy, 1.0" in setup
    assert "a long name of a policy, 2.0" in setup
    assert "1. " in browser.find_element("id", "change").text


def test_a_page_prints_its_answer_and_says_where_the_rest_is(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    for page, most in (("plain", 9), ("big", 24)):
        show(browser, pages[page])
        assert not script(browser, "return document.body.innerText.includes('not printed')")
        assert report_paper.pages(b64decode(browser.print_page())) <= most, page
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    text = script(
        browser, "dispatchEvent(new Event('beforeprint')); return document.body.innerText"
    )
    assert "1,265 of 1,305 rows are not printed." in text
    assert script(browser, "return document.querySelector('#answer details').open")


@pytest.mark.parametrize("page", ["big", "hostile", "sweep", "capacity", "systems", "records"])
def test_nothing_is_cut_off_at_the_edge_of_the_paper(
    browser: webdriver.Chrome, pages: dict[str, str], page: str
) -> None:
    show(browser, pages[page], width=688)  # pixels between the margins of A4
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    script(browser, "dispatchEvent(new Event('beforeprint'))")
    outside = """return [...document.querySelectorAll('table, figure svg, pre, p, dd')]
          .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
          .map(e => e.outerHTML.slice(0, 90))"""
    assert script(browser, outside) == []
